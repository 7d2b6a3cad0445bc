// Streams: the batch in slices that may be under way at the same time.
//
// Idea. A stream is a queue of the GPU's: work in one stream is done in order,
// work in different streams may overlap. The copies to the device and back have
// engines of their own, so while one slice of the batch is computed, the next
// can be uploaded and the last downloaded.
//
// Change against a rung with one launch: the convolution itself is not faster.
// Its operands are on the device already and one launch fills the GPU, so as an
// operation this rung can at best tie with one launch of the same kernel; each
// further launch costs a few microseconds, and the end of each slice leaves
// some multiprocessors idle unless another stream's slice fills them. What the
// streams are for shows in a program that begins and ends in host memory: there
// the copies take far longer than the kernel (fa19's first layer, 10,000
// images: 0.2 GB up, 2.1 GB down, at some 50 GB/s about 45 ms), and overlapped
// the three take as long as the longest. kernels/convolution/overlap.h runs and
// measures that.
//
// Default stream. Launches here wait for what was started in the default stream
// before, and what is started there later waits for them, because the streams
// are made without cudaStreamNonBlocking: callers see no difference.
//
// Measured on an H200 (10,000 images): as an operation fa19's layers take 6.61
// and 21.2 ms in eight slices, the same in one, and 6.62 and 21.2 in 32:
// nothing is gained, and next to nothing lost. As a program, from pinned memory
// to pinned memory, eight slices take 48.1 ms one after another and 39.9 in
// three streams for the first layer, which is the download alone at 52
// GB/s; 45.7 and 24.2 for the second, and 21.8 with 50 slices, whose first
// upload and last download are shorter.
//
// Counters (ncu, fa19's layers, one slice; ncu runs slices alone, so they say
// nothing of overlap). Issue slots are 70 % used, by 12 and 8 instructions per
// multiply-add (at 1.98 GHz). Occupancy is 39 and 44 %, for 64 registers allow
// 50, and loads are waited for (long scoreboard 2.4 and 4.4 cycles per
// instruction), though L1 hits are 89 and 96 %.
//
// The kernel. As in the naive rung a thread computes an output position, but
// for four output channels, so that an input is loaded once for four products;
// a slice is another batch and other pointers.
#include <algorithm>

#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kTile = 16;
constexpr int kFilters = 4;  // output channels per thread
constexpr int kQueues = 4;
constexpr int64_t kSlices = 8;

__global__ void FourFiltersKernel(const float* x, const float* k, float* y,
                                  int C, int H, int W, int M, int K,
                                  int blocks_x, int blocks_y, int groups) {
  const int64_t plane = blockIdx.x / (blocks_x * blocks_y);
  const int tile = blockIdx.x % (blocks_x * blocks_y);
  const int64_t b = plane / groups;
  const int m = plane % groups * kFilters;
  const int h = tile / blocks_x * kTile + threadIdx.y;
  const int w = tile % blocks_x * kTile + threadIdx.x;
  const int H_out = H - K + 1;
  const int W_out = W - K + 1;
  if (h >= H_out || w >= W_out) return;
  const int64_t filter = int64_t{C} * K * K;  // elements
  const float* weights[kFilters];
  float sum[kFilters] = {};
  for (int f = 0; f < kFilters; ++f) {
    // Past the last channel the last one is computed again, and not stored.
    weights[f] = k + min(m + f, M - 1) * filter;
  }
  for (int c = 0; c < C; ++c) {
    for (int p = 0; p < K; ++p) {
      const float* row = x + ((b * C + c) * H + h + p) * W + w;
      for (int q = 0; q < K; ++q) {
        const int tap = (c * K + p) * K + q;
        for (int f = 0; f < kFilters; ++f) sum[f] += row[q] * weights[f][tap];
      }
    }
  }
  for (int f = 0; f < kFilters; ++f) {
    if (m + f < M) y[((b * M + m + f) * H_out + h) * W_out + w] = sum[f];
  }
}

Error StartSlice(const Problem& p, const float* x, const float* k, float* y,
                 cudaStream_t stream) {
  const int64_t blocks_x = CeilDivide(p.output_width(), kTile);
  const int64_t blocks_y = CeilDivide(p.output_height(), kTile);
  const int64_t groups = CeilDivide(p.filters, kFilters);
  const int64_t blocks = p.batch * groups * blocks_x * blocks_y;
  FourFiltersKernel<<<blocks, dim3(kTile, kTile), 0, stream>>>(
      x, k, y, p.channels, p.height, p.width, p.filters, p.kernel_size,
      blocks_x, blocks_y, groups);
  return CheckLaunch("FourFiltersKernel");
}

class Streams : public Kernel {
 public:
  using Kernel::Kernel;

  Error Prepare() override {
    RETURN_IF_CUDA_ERROR(
        cudaEventCreateWithFlags(&begin_, cudaEventDisableTiming));
    for (Queue& queue : queues_) {
      RETURN_IF_CUDA_ERROR(
          cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking));
      RETURN_IF_CUDA_ERROR(
          cudaEventCreateWithFlags(&queue.end, cudaEventDisableTiming));
    }
    return {};
  }

  ~Streams() override {
    for (const Queue& queue : queues_) {
      if (queue.stream != nullptr) cudaStreamDestroy(queue.stream);
      if (queue.end != nullptr) cudaEventDestroy(queue.end);
    }
    if (begin_ != nullptr) cudaEventDestroy(begin_);
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const Problem& p = problem_;
    const int64_t images = CeilDivide(p.batch, kSlices);
    // The slices come after what the caller's stream holds now...
    RETURN_IF_CUDA_ERROR(cudaEventRecord(begin_, stream));
    for (const Queue& queue : queues_) {
      RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(queue.stream, begin_));
    }
    int next = 0;
    for (int64_t b = 0; b < p.batch; b += images) {
      Problem slice = p;
      slice.batch = std::min(images, p.batch - b);
      RETURN_IF_FAILED(
          StartSlice(slice, x + b * p.channels * p.height * p.width, k,
                     y + b * p.filters * p.output_height() * p.output_width(),
                     queues_[next].stream));
      next = (next + 1) % kQueues;
    }
    // ... and before what it gets afterwards.
    for (const Queue& queue : queues_) {
      RETURN_IF_CUDA_ERROR(cudaEventRecord(queue.end, queue.stream));
      RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream, queue.end));
    }
    return {};
  }

 private:
  struct Queue {
    cudaStream_t stream = nullptr;
    cudaEvent_t end = nullptr;
  };
  cudaEvent_t begin_ = nullptr;
  Queue queues_[kQueues];
};

}  // namespace

extern const KernelVariant kStreams;
const KernelVariant kStreams = {
    "streams",
    AccuracyClass::kFp32,
    Track::kSpecialty,
    "Cuts the batch into eight slices and starts each in one of four streams; "
    "a "
    "thread computes a position of four output channels.",
    "Slices in different streams may overlap with each other and with copies "
    "to and from the device; with everything on the device already there is "
    "nothing to gain, the program's time is where it shows.",
    RejectHugeImages,
    Make<Streams>,
};

}  // namespace convlab::cuda
