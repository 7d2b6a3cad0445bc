// The files of a contributed kernel.
#ifndef KERNELS_JUDGE_SOURCE_FILES_H_
#define KERNELS_JUDGE_SOURCE_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/judge/source/source.h"

namespace convlab {

struct KernelFile {
  std::string path;        // absolute
  std::string relative;    // to the kernel's folder: "matmul.h", "../util.h"
  std::string content;     // without a byte order mark
  bool of_header = false;  // defines what a header declares; nobody includes it
};

// Returns the file at `path`, whose content is `content`, and those that it
// includes by name, transitively and each once; of a header whose functions are
// defined in a source file of the same name beside it, that file too
// (matmul.cu of matmul.h), unless that file is a kernel by itself. Includes
// that name no file are left out: they are the compiler's or the judge's.
// InvalidArgument if there are too many or one is not text.
absl::StatusOr<std::vector<KernelFile>> FilesOfKernel(
    const std::string& path, const std::string& content);

// Returns the path that an include in `file` names, relative to the kernel's
// folder, whether or not there is such a file.
std::string IncludedPath(const KernelFile& file, const Include& include);

// Reads a file of text. NotFound, or InvalidArgument if it is empty, no text or
// larger than any source.
absl::StatusOr<std::string> ReadText(const std::string& path);

// The functions of a file that belong to an interface.
struct InterfaceFunctions {
  std::vector<Function> mini_dnn;  // GPUInterface's, definitions
  std::vector<Function> cpu;       // conv_forward_cpu
  std::vector<Function> mxnet;     // forward on tensors
  std::vector<Function> plain;     // convolution

  bool empty() const {
    return mini_dnn.empty() && cpu.empty() && mxnet.empty() && plain.empty();
  }
};

InterfaceFunctions FindInterface(const SourceText& source);

}  // namespace convlab

#endif  // KERNELS_JUDGE_SOURCE_FILES_H_
