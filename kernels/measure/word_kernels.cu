#include "kernels/measure/word_kernels.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 256;
// Enough to keep the memory of any GPU busy.
constexpr int kBlocks = 1024;

__device__ void AddToResult(unsigned long long sum,
                            unsigned long long* result) {
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(0xffffffff, sum, offset);
  }
  if (threadIdx.x % 32 == 0) atomicAdd(result, sum);
}

__global__ void CountKernel(const uint32_t* words, int64_t count,
                            uint32_t value, unsigned long long* result) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  unsigned long long found = 0;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += step) {
    found += words[i] == value;
  }
  AddToResult(found, result);
}

__global__ void FingerprintKernel(const uint32_t* words, int64_t count,
                                  unsigned long long* result) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  unsigned long long sum = 0;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += step) {
    // Odd factors that differ by position: a changed word changes the sum, and
    // so do two exchanged words.
    sum += words[i] * (2 * static_cast<unsigned long long>(i) + 1) *
           0x9e3779b97f4a7c15ull;
  }
  AddToResult(sum, result);
}

}  // namespace

Error LaunchCount(const uint32_t* words, int64_t count, uint32_t value,
                  unsigned long long* result) {
  CountKernel<<<kBlocks, kThreads>>>(words, count, value, result);
  return CheckLaunch("CountKernel");
}

Error LaunchFingerprint(const uint32_t* words, int64_t count,
                        unsigned long long* result) {
  FingerprintKernel<<<kBlocks, kThreads>>>(words, count, result);
  return CheckLaunch("FingerprintKernel");
}

}  // namespace convlab::cuda
