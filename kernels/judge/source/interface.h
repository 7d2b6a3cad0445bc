// The interfaces that contributed files have, told by their content.
#ifndef KERNELS_JUDGE_SOURCE_INTERFACE_H_
#define KERNELS_JUDGE_SOURCE_INTERFACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

// By the framework of the course's terms, and our own.
enum class KernelInterface {
  kMxnetGpu,     // FA17 to FA19: template <> void forward<gpu, float>(...)
  kMxnetCpu,     // likewise: void forward(mshadow::Tensor<cpu, 4, DType>&...)
  kMiniDnnHost,  // FA20: GPUInterface::conv_forward_gpu on host pointers
  kMiniDnnGpu,   // from SP21: conv_forward_gpu_prolog, ..._gpu, ..._epilog
  kMiniDnnCpu,   // from FA20: void conv_forward_cpu(...)
  kPlainGpu,     // extern "C" void convolution(..., cudaStream_t stream)
  kPlainCpu,     // the same without the stream
  kLibrary,      // a shared library with convlab_kernel() (abi.h)
};

// "mini-dnn, prolog and epilog"
absl::string_view Name(KernelInterface kernel_interface);
bool UsesGpu(KernelInterface kernel_interface);  // false for kLibrary

// How a term of the course printed its results.
enum class CourseTerm { kMxnet, kMiniDnn, kOwn };
CourseTerm TermOf(KernelInterface kernel_interface);

// The source of one kernel as its owner wrote it.
struct KernelSource {
  std::string name;    // of the file or folder, without its ending
  std::string path;    // absolute, of the file that holds the interface
  std::string folder;  // absolute; quoted includes are searched there
  KernelInterface kernel_interface;
  bool stride = false;  // takes a stride after the kernel size
  std::string content;  // of the file at `path`
  // SHA-256 in hexadecimal digits over the content of all files of the kernel:
  // the file, and those in its folder that it includes by name, transitively.
  std::string digest;
};

// Reads a contributed kernel: a file (.cu, .cuh, .h, .cc, .cpp, .so) or a
// folder in which exactly one file has an interface. NotFound if there is no
// such file; InvalidArgument if it has no interface or more than one, if it is
// not text, or if a folder has none or several; each in one line that names the
// file, what was found and what was expected.
absl::StatusOr<KernelSource> ReadKernelSource(const std::string& path);

}  // namespace convlab

#endif  // KERNELS_JUDGE_SOURCE_INTERFACE_H_
