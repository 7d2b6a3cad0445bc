// Looks into a shared library without running any of it.
#ifndef KERNELS_JUDGE_SOURCE_LIBRARY_FILE_H_
#define KERNELS_JUDGE_SOURCE_LIBRARY_FILE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace convlab {

// Checks that `content` is that of a shared library for this kind of processor
// that defines the function convlab_kernel() of abi.h; which version of the
// interface it has, only its process can ask. InvalidArgument says what it is
// instead.
absl::Status CheckKernelLibrary(absl::string_view content);

// Bytes of __constant__ memory that the GPU code in a library takes; the code
// must not be compressed. ptxas names them for some architectures only.
int64_t ConstantBytes(absl::string_view content);

}  // namespace convlab

#endif  // KERNELS_JUDGE_SOURCE_LIBRARY_FILE_H_
