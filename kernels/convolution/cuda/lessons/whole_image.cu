// Whole images in shared memory, one kernel per layer size.
//
// Idea. A kernel that knows its layer can hold the right things in the right
// places. Whole input images go to shared memory, once; a block keeps the
// weights there, too, and walks over images. A thread computes one item at a
// time in registers: R rows below each other, one or two columns, F filters.
// Neighbouring threads take neighbouring columns.
//
//   For one input channel and one filter column q a thread loads the
//   R + K - 1 inputs of its column. They serve all K taps of that filter
//   column: tap p multiplies the R inputs from row p on. The F weights of a tap
//   lie side by side and are read by 8 or 16 bytes. That is R + K - 1 + F*K/4
//   shared loads for F*R*K multiply-adds: 29 for 504 in fa18's second layer,
//   where naive needs 1,008.
//
// Change from register_tiled and direct_tiled. All sizes are template
// arguments, so every loop but the two outer ones is unrolled and every
// register has a fixed name. The table below says how each of the course's
// layers is cut; other sizes, and GPUs with too little shared memory, get a
// general kernel of 4 rows x 4 filters per thread that reads through the
// caches.
//
// Cost. Inputs are read once and outputs written once, the least there is. The
// FLOPs are the definition's, plus those of idle lanes: where the threads of a
// block are not all needed, or rows stick out (29 rows are cut as 3 x 10).
//
// Bound. Second layers: FP32 multiply-adds. First layers: multiply-adds and
// writing the output, which take about the same time. A row of 66 floats is
// 8.25 sectors of 32 bytes, so stores of parts of rows leave sectors half
// written, and these cost more than their bytes. Two columns per thread help: a
// warp then covers a row. The first layers of fa19 and sp19, which have the
// fewest FLOPs per output, collect the planes of a block's filters in shared
// memory, and the copy engine of compute capability 9.0 writes them in one
// piece while the next ones are computed.
//
// Reached. Most of the multiply-adds' peak on second layers; on first layers
// neither resource is full (docs/journal/whole_image.md).
#include <algorithm>
#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lessons/whole_image.cuh"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"

namespace convlab::cuda {
namespace {

using whole_image::Block;
using whole_image::Item;
using whole_image::Layer;
using whole_image::Output;
using whole_image::Size;
using whole_image::WholeImageKernel;

// For any size, reading through the caches.
constexpr int kGeneralThreads = 256;
constexpr int kSide = 4;  // a thread computes 4 rows for 4 filters

__global__ void __launch_bounds__(kGeneralThreads)
    GeneralKernel(const float* __restrict__ x, const float* __restrict__ k,
                  float* __restrict__ y, int64_t B, int C, int H, int W, int M,
                  int K) {
  const int H_out = H - K + 1;
  const int W_out = W - K + 1;
  const int row_groups = (H_out - 1) / kSide + 1;
  const int filter_groups = (M - 1) / kSide + 1;
  int64_t item = int64_t{blockIdx.x} * kGeneralThreads + threadIdx.x;
  const int w = item % W_out;
  item /= W_out;
  const int h0 = item % row_groups * kSide;
  item /= row_groups;
  const int m0 = item % filter_groups * kSide;
  const int64_t b = item / filter_groups;
  if (b >= B) return;
  // Beyond the last row and filter, the last one is computed again and not
  // stored.
  int64_t rows[kSide];
  int64_t filters[kSide];
  for (int i = 0; i < kSide; ++i) {
    rows[i] = int64_t{min(h0 + i, H_out - 1)} * W + w;
    filters[i] = int64_t{min(m0 + i, M - 1)} * C * K * K;
  }
  float sums[kSide][kSide] = {};
  for (int c = 0; c < C; ++c) {
    const float* const image = x + (b * C + c) * H * W;
    const float* const weights = k + int64_t{c} * K * K;
    for (int p = 0; p < K; ++p) {
      for (int q = 0; q < K; ++q) {
        float in[kSide];
        float tap[kSide];
#pragma unroll
        for (int i = 0; i < kSide; ++i) {
          in[i] = image[rows[i] + int64_t{p} * W + q];
          tap[i] = weights[filters[i] + p * K + q];
        }
#pragma unroll
        for (int f = 0; f < kSide; ++f) {
#pragma unroll
          for (int i = 0; i < kSide; ++i) sums[f][i] += in[i] * tap[f];
        }
      }
    }
  }
#pragma unroll
  for (int f = 0; f < kSide; ++f) {
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
      if (m0 + f < M && h0 + i < H_out) {
        y[((b * M + m0 + f) * H_out + h0 + i) * W_out + w] = sums[f][i];
      }
    }
  }
}

// A compiled layer as the host sees it.
struct Instance {
  int channels, size, filters, kernel_size;
  void (*kernel)(const float*, const float*, float*, int64_t);
  int shared_bytes;
  int threads;
  int images;
};

template <typename L>
constexpr Instance InstanceOf() {
  return {
      L::C,        L::S,      L::M, L::K, WholeImageKernel<L>, L::kSharedBytes,
      L::kThreads, L::kImages};
}

// The fastest of some 20 ways to cut each layer, tried on an H200.
constexpr Instance kInstances[] = {
    // fa17
    InstanceOf<Layer<Size<1, 28, 50, 5>, Item<10, 6, 1>, Block<128, 1, 4>>>(),
    // fa18
    InstanceOf<Layer<Size<1, 72, 12, 7>, Item<12, 3, 2>, Block<128, 1, 4>>>(),
    InstanceOf<Layer<Size<12, 33, 24, 7>, Item<8, 9, 1>, Block<256, 1, 2>>>(),
    // sp19
    InstanceOf<Layer<Size<1, 48, 6, 5>, Item<2, 22, 1>, Block<96, 1, 8>,
                     Output::kCollected>>(),
    InstanceOf<Layer<Size<6, 22, 16, 5>, Item<8, 9, 1>, Block<160, 4, 3>>>(),
    // fa19
    InstanceOf<Layer<Size<1, 70, 12, 5>, Item<4, 22, 1>, Block<224, 1, 2>,
                     Output::kCollected>>(),
    InstanceOf<Layer<Size<12, 33, 24, 5>, Item<12, 10, 1>, Block<192, 1, 2>>>(),
    // fa20
    InstanceOf<Layer<Size<1, 86, 4, 7>, Item<4, 10, 1>, Block<128, 1, 5>>>(),
    InstanceOf<Layer<Size<4, 40, 16, 7>, Item<4, 17, 1>, Block<384, 4, 1>>>(),
};

int64_t GeneralBlocks(const Problem& p) {
  const int64_t items = p.batch * CeilDivide(p.filters, kSide) *
                        CeilDivide(p.output_height(), kSide) * p.output_width();
  return CeilDivide(items, kGeneralThreads);
}

class WholeImage : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    const Problem& p = problem_;
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    for (const Instance& instance : kInstances) {
      if (instance.channels != p.channels || instance.size != p.height ||
          instance.size != p.width || instance.filters != p.filters ||
          instance.kernel_size != p.kernel_size ||
          instance.shared_bytes > limits.shared_per_block) {
        continue;
      }
      RETURN_IF_FAILED(
          AllowAllSharedMemory(reinterpret_cast<const void*>(instance.kernel)));
      int blocks;
      RETURN_IF_CUDA_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
          &blocks, instance.kernel, instance.threads, instance.shared_bytes));
      blocks_ = std::min<int64_t>(CeilDivide(p.batch, instance.images),
                                  int64_t{blocks} * limits.multiprocessors);
      instance_ = &instance;
    }
    return {};
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const Problem& p = problem_;
    // A tensor from cudaMalloc is aligned, but a part of one may not be.
    const bool aligned = reinterpret_cast<uintptr_t>(x) % 16 == 0 &&
                         reinterpret_cast<uintptr_t>(y) % 16 == 0;
    if (instance_ != nullptr && aligned) {
      instance_->kernel<<<blocks_, instance_->threads, instance_->shared_bytes,
                          stream>>>(x, k, y, p.batch);
      return CheckLaunch("WholeImageKernel");
    }
    GeneralKernel<<<GeneralBlocks(p), kGeneralThreads, 0, stream>>>(
        x, k, y, p.batch, p.channels, p.height, p.width, p.filters,
        p.kernel_size);
    return CheckLaunch("GeneralKernel");
  }

 private:
  const Instance* instance_ = nullptr;  // null: use the general kernel
  int64_t blocks_ = 0;
};

const char* Reject(const Problem& problem) {
  return GeneralBlocks(problem) > kMaxGridX ? kTooManyBlocks : nullptr;
}

}  // namespace

extern const KernelVariant kWholeImage;
const KernelVariant kWholeImage = {
    "whole_image",
    AccuracyClass::kFp32,
    Track::kLesson,
    "A kernel compiled for each of the course's layers: whole images in shared "
    "memory, many outputs per thread in registers.",
    "Each input and each weight that is loaded serves many products, and all "
    "sizes are constants.",
    Reject,
    Make<WholeImage>,
};

}  // namespace convlab::cuda
