// From the last layer's values to labels: softmax, then the most probable
// class. One thread per image; ten values are too few to share among threads,
// and 10,000 images of them, 400 kB, stay in the cache.
#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/layers/cuda/launches.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void SoftmaxKernel(int64_t batch, int classes, float* values) {
  const int64_t b = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (b >= batch) return;
  float* const row = values + b * classes;
  float largest = row[0];
  for (int i = 1; i < classes; ++i) largest = fmaxf(largest, row[i]);
  float sum = 0;
  for (int i = 0; i < classes; ++i) {
    row[i] = expf(row[i] - largest);
    sum += row[i];
  }
  for (int i = 0; i < classes; ++i) row[i] /= sum;
}

__global__ void LabelKernel(int64_t batch, int classes, const float* values,
                            uint8_t* labels) {
  WaitForKernelBefore();
  const int64_t b = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (b >= batch) return;
  const float* const row = values + b * classes;
  int label = 0;
  for (int i = 1; i < classes; ++i) {
    // The first of equals, as on the CPU.
    if (row[i] > row[label]) label = i;
  }
  labels[b] = label;
}

}  // namespace

Error LaunchSoftmax(int64_t batch, int classes, float* values) {
  SoftmaxKernel<<<CeilDivide(batch, kThreads), kThreads>>>(batch, classes,
                                                           values);
  return CheckLaunch("SoftmaxKernel");
}

Error LaunchLabel(int64_t batch, int classes, const float* values,
                  uint8_t* labels, cudaStream_t stream) {
  return LaunchOverlapping(
      "LabelKernel", LabelKernel,
      MayOverlap(reinterpret_cast<const void*>(LabelKernel)),
      CeilDivide(batch, kThreads), kThreads, /*shared_bytes=*/0, stream, batch,
      classes, values, labels);
}

}  // namespace convlab::cuda
