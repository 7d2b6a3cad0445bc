// Errors of CUDA calls in .cu files. absl::Status would add two seconds to the
// compilation of each of them; device.h turns these errors into one.
#ifndef KERNELS_CUDA_ERROR_H_
#define KERNELS_CUDA_ERROR_H_

#include <cuda_runtime_api.h>

namespace convlab::cuda {

// Both texts are static: literals, or results of cudaGetErrorString.
struct [[nodiscard]] Error {
  const char* call = nullptr;  // what failed; null if nothing did
  const char* reason = nullptr;
  bool out_of_memory = false;

  bool failed() const { return call != nullptr; }
};

inline Error Check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return {};
  // Clears the error, so that the next call reports only its own.
  cudaGetLastError();
  return {call, cudaGetErrorString(code), code == cudaErrorMemoryAllocation};
}

// Called after a launch: an error if `kernel` could not be started.
inline Error CheckLaunch(const char* kernel) {
  return Check(cudaGetLastError(), kernel);
}

}  // namespace convlab::cuda

// Returns from the enclosing function, which returns an Error, if the call,
// which returns a cudaError_t, fails. A macro because the error holds the
// call's text.
#define RETURN_IF_CUDA_ERROR(call)                    \
  do {                                                \
    if (const ::convlab::cuda::Error returned_error = \
            ::convlab::cuda::Check((call), #call);    \
        returned_error.failed()) {                    \
      return returned_error;                          \
    }                                                 \
  } while (false)

// The same for a call that returns an Error.
#define RETURN_IF_FAILED(call)                                \
  do {                                                        \
    if (const ::convlab::cuda::Error returned_error = (call); \
        returned_error.failed()) {                            \
      return returned_error;                                  \
    }                                                         \
  } while (false)

#endif  // KERNELS_CUDA_ERROR_H_
