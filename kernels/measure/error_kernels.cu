// One thread computes one output after the other by the definition, in float64.
// It shares nothing with the kernels that it checks, and need not be fast: a
// layer of 10,000 images takes a tenth of a second.
#include "common/accuracy/contract.h"
#include "common/hash/mix.h"
#include "kernels/measure/error_kernels.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 4096;

struct Sums {
  double difference = 0, norm = 0, factor = 0, plain = 0;
};

__device__ void AddOutput(const Problem& problem, const float* x,
                          const float* k, const float* y, int64_t index,
                          Sums* sums) {
  const int64_t output_width = problem.width - problem.kernel_size + 1;
  const int64_t plane =
      (problem.height - problem.kernel_size + 1) * output_width;
  const int64_t b = index / (problem.filters * plane);
  const int64_t m = index / plane % problem.filters;
  const int64_t h = index % plane / output_width;
  const int64_t w = index % output_width;
  const int size = static_cast<int>(problem.kernel_size);
  OutputReference reference;
  reference.terms = problem.channels * size * size;
  float plain = 0;
  const float* weight = k + m * reference.terms;
  for (int64_t c = 0; c < problem.channels; ++c) {
    const float* in =
        x + ((b * problem.channels + c) * problem.height + h) * problem.width +
        w;
    for (int p = 0; p < size; ++p, in += problem.width) {
      for (int q = 0; q < size; ++q, ++weight) {
        const double product = static_cast<double>(*weight) * in[q];
        reference.y64 += product;
        reference.magnitude += product < 0 ? -product : product;
        plain = __fadd_rn(plain, __fmul_rn(*weight, in[q]));
      }
    }
  }
  // An infinity or NaN makes the magnitude one too.
  const double difference = y[index] - reference.y64;
  sums->difference += difference * difference;
  sums->norm += reference.y64 * reference.y64;
  sums->factor = fmax(sums->factor, ErrorFactor(y[index], reference));
  sums->plain = fmax(sums->plain, ErrorFactor(plain, reference));
}

__global__ void ErrorKernel(Problem problem, const float* x, const float* k,
                            const float* y, uint64_t outputs, int64_t count,
                            bool drawn, uint64_t seed, ErrorSumsBits* total) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  Sums sums;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += step) {
    AddOutput(problem, x, k, y,
              drawn ? static_cast<int64_t>(Mix(seed, i) % outputs) : i, &sums);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sums.difference += __shfl_down_sync(0xffffffff, sums.difference, offset);
    sums.norm += __shfl_down_sync(0xffffffff, sums.norm, offset);
    sums.factor =
        fmax(sums.factor, __shfl_down_sync(0xffffffff, sums.factor, offset));
    sums.plain =
        fmax(sums.plain, __shfl_down_sync(0xffffffff, sums.plain, offset));
  }
  if (threadIdx.x % 32 != 0) return;
  atomicAdd(&total->difference, sums.difference);
  atomicAdd(&total->norm, sums.norm);
  atomicMax(&total->factor,
            static_cast<unsigned long long>(__double_as_longlong(sums.factor)));
  atomicMax(&total->plain,
            static_cast<unsigned long long>(__double_as_longlong(sums.plain)));
}

}  // namespace

Error LaunchErrors(const Problem& problem, const float* x, const float* k,
                   const float* y, int64_t count, bool drawn, uint64_t seed,
                   ErrorSumsBits* sums) {
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  ErrorKernel<<<static_cast<int>(blocks < kMostBlocks ? blocks : kMostBlocks),
                kThreads>>>(problem, x, k, y,
                            static_cast<uint64_t>(problem.output_elements()),
                            count, drawn, seed, sums);
  return CheckLaunch("ErrorKernel");
}

}  // namespace convlab::cuda
