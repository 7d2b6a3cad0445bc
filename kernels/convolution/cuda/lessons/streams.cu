// Streams: the batch in slices that may be under way at the same time.
//
// Idea. A stream is a queue of the GPU: work in one stream is done in order,
// work in different streams may overlap. The copies to the device and back have
// engines of their own, so while one slice of the batch is computed, the next
// can be uploaded and the last downloaded.
//
// Change from a variant with one launch. The convolution itself is not faster:
// its operands are on the device already and one launch fills the GPU, so as an
// operation this variant can at best tie with one launch of the same kernel.
// Each further launch costs a few microseconds, and the end of each slice
// leaves some multiprocessors idle unless another stream's slice fills them.
// Streams help a program that begins and ends in host memory: there the copies
// take far longer than the kernel, and overlapped the three take as long as the
// longest. kernels/measure/overlap.h runs and measures that.
//
// Order. The slices wait for what the caller's stream holds when Run is called,
// and what the caller queues there afterwards waits for the slices: callers see
// no difference.
//
// Kernel. As in naive a thread computes an output position, but for four output
// channels, so that an input is loaded once for four products; a slice is
// another batch and other pointers.
//
// Bound. As an operation: instructions, as in naive. As a program: the longer
// of the two copies.
//
// Reached. As an operation, nothing is gained and next to nothing lost; as a
// program, the time of the longer copy (docs/journal/streams.md).
#include <algorithm>

#include "common/math/rounding.h"
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
    // Beyond the last channel the last one is computed again and not stored.
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
    "a thread computes a position of four output channels.",
    "Slices in different streams may overlap with each other and with copies "
    "to and from the device, which shortens a program that begins and ends in "
    "host memory, but not the operation.",
    RejectHugeImages,
    Make<Streams>,
};

}  // namespace convlab::cuda
