// What old CUDA had and today's toolkit refuses, where there is one honest
// meaning. The judge renames the file's uses of shuffles and votes to these and
// says so; they are those of a full warp.
#ifndef CONVLAB_OLD_CUDA_H_
#define CONVLAB_OLD_CUDA_H_

#include <cuda_runtime.h>

#define CONVLAB_ALL_LANES 0xffffffffu

template <typename T>
static __device__ __forceinline__ T convlab__shfl(T value, int lane,
                                                  int width = 32) {
  return __shfl_sync(CONVLAB_ALL_LANES, value, lane, width);
}
template <typename T>
static __device__ __forceinline__ T convlab__shfl_up(T value, unsigned delta,
                                                     int width = 32) {
  return __shfl_up_sync(CONVLAB_ALL_LANES, value, delta, width);
}
template <typename T>
static __device__ __forceinline__ T convlab__shfl_down(T value, unsigned delta,
                                                       int width = 32) {
  return __shfl_down_sync(CONVLAB_ALL_LANES, value, delta, width);
}
template <typename T>
static __device__ __forceinline__ T convlab__shfl_xor(T value, int mask,
                                                      int width = 32) {
  return __shfl_xor_sync(CONVLAB_ALL_LANES, value, mask, width);
}
static __device__ __forceinline__ int convlab__any(int predicate) {
  return __any_sync(CONVLAB_ALL_LANES, predicate);
}
static __device__ __forceinline__ int convlab__all(int predicate) {
  return __all_sync(CONVLAB_ALL_LANES, predicate);
}
static __device__ __forceinline__ unsigned convlab__ballot(int predicate) {
  return __ballot_sync(CONVLAB_ALL_LANES, predicate);
}

#if CUDART_VERSION >= 13000
static inline cudaError_t cudaThreadSynchronize() {
  return cudaDeviceSynchronize();
}
static inline cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) {
  return cudaDeviceSetCacheConfig(config);
}
#endif

#endif  // CONVLAB_OLD_CUDA_H_
