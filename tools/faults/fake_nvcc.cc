// What nvcc's code calls of the CUDA runtime before main and for <<<>>>, for
// machines without a GPU (fake_cuda.cc).
#include <cuda_runtime_api.h>

#include <cstddef>

#include "tools/faults/fake_devices.h"

namespace {

thread_local struct {
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
} configuration;

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int,
                       int) {}
void __cudaRegisterFunction(void**, const char* function, char*,
                            const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  convlab::fake::AddKernel(function, name);
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     CUstream_st* stream) {
  configuration = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared,
                                       void* stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}

}  // extern "C"
