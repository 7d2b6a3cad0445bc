// Compiles a contributed kernel into a library with the interface of abi.h.
#ifndef KERNELS_JUDGE_SOURCE_COMPILE_H_
#define KERNELS_JUDGE_SOURCE_COMPILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/judge/source/interface.h"

namespace convlab {

// What the compiler says of one kernel of the GPU.
struct DeviceFunction {
  std::string name;            // demangled, without parameters
  int registers = 0;           // per thread
  int64_t shared_bytes = 0;    // static, per block
  int64_t constant_bytes = 0;  // of all __constant__ variables of the file
  int64_t stack_bytes = 0;     // local memory per thread
  int64_t spill_store_bytes = 0;
  int64_t spill_load_bytes = 0;
};

struct CompiledKernel {
  KernelSource source;
  std::string library;  // the path of the shared library
  std::vector<DeviceFunction> functions;
  std::vector<std::string> warnings;  // "new-forward.cu:12: ...", at most 10
  double seconds = 0;
};

struct CompileOptions {
  std::string folder;  // where the library and temporary files go; must exist
  // Of the GPU, 90 for 9.0; the code is for this one only. 0 where there is no
  // GPU: then for every architecture that the toolkit calls its default.
  int compute_capability = 0;
};

// Compiles the file, and nothing but the file, with nvcc or g++. A kLibrary is
// only checked to be a shared library of this ABI. Errors are one line each:
// Unavailable if the compiler is missing, with the places where it was looked
// for; InvalidArgument with the compiler's own first error and the file's line,
// or for constructs of old CUDA what to write instead. Nothing is left behind
// in case of an error.
absl::StatusOr<CompiledKernel> CompileKernel(const KernelSource& source,
                                             const CompileOptions& options);

// Of a status of CompileKernel the compiler's first errors in the same form, a
// line each and at most five; empty if the status's message names all.
std::vector<std::string> CompilerErrors(const absl::Status& status);

}  // namespace convlab

#endif  // KERNELS_JUDGE_SOURCE_COMPILE_H_
