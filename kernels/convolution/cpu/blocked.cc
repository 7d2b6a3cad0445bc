// The definition's loops in another order, in blocks.
//
// Idea. naive waits for one addition after the other, because it finishes a sum
// before it begins the next. With the loops over the filter outside and a block
// of neighbouring outputs inside, the block's sums do not wait for each other,
// and they stay in registers until they are complete.
//
// Change from naive_parallel, the last lesson without a library: the order of
// the loops, and eight outputs of a row at a time. The outputs that remain at
// the end of a row are computed one by one. Plain C++.
//
// Bound. Without vectors, every product takes a load, a multiplication and an
// addition of its own. A core that starts two of each per cycle does 4 FLOPs
// per cycle, a quarter of what SSE2 can do.
//
// Reached. Slower than im2col_eigen, which has vectors and uses what it loads
// for several filters, but several times as fast as naive_parallel. The block's
// width matters: too few sums do not hide an addition's latency, too many do
// not fit the registers (docs/journal/cpu_blocked.md).
#include <algorithm>
#include <cstdint>
#include <memory>

#include "kernels/convolution/convolution.h"

namespace convlab::cpu {
namespace {

constexpr int64_t kColumns = 8;

class Blocked : public Convolution {
 public:
  Blocked(const Problem& problem, Workers& workers)
      : problem_(problem), workers_(workers) {}

  absl::Status Run(const float* x, const float* k, float* y, Stream) override {
    const int64_t C = problem_.channels, K = problem_.kernel_size;
    const int64_t M = problem_.filters;
    const int64_t image = C * problem_.height * problem_.width;
    const int64_t H_out = problem_.output_height();
    const int64_t W_out = problem_.output_width();
    workers_.For(problem_.batch * M, 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* filter = k + i % M * C * K * K;
        for (int64_t h = 0; h < H_out; ++h) {
          const float* in = x + i / M * image + h * problem_.width;
          float* out = y + (i * H_out + h) * W_out;
          for (int64_t w = 0; w < W_out; w += kColumns) {
            if (w + kColumns <= W_out) {
              Block(in + w, filter, out + w);
            } else {
              for (int64_t j = w; j < W_out; ++j) out[j] = One(in + j, filter);
            }
          }
        }
      }
    });
    return absl::OkStatus();
  }

 private:
  // kColumns neighbouring outputs.
  void Block(const float* in, const float* filter, float* out) const {
    const int64_t K = problem_.kernel_size;
    float sums[kColumns] = {};
    for (int64_t c = 0; c < problem_.channels; ++c) {
      for (int64_t p = 0; p < K; ++p) {
        const float* row = in + (c * problem_.height + p) * problem_.width;
        for (int64_t q = 0; q < K; ++q, ++filter) {
          const float weight = *filter;
#pragma GCC unroll 16
          for (int64_t j = 0; j < kColumns; ++j) sums[j] += row[q + j] * weight;
        }
      }
    }
    std::copy_n(sums, kColumns, out);
  }

  // One output, as in naive.
  float One(const float* in, const float* filter) const {
    const int64_t K = problem_.kernel_size;
    float sum = 0;
    for (int64_t c = 0; c < problem_.channels; ++c) {
      for (int64_t p = 0; p < K; ++p) {
        const float* row = in + (c * problem_.height + p) * problem_.width;
        for (int64_t q = 0; q < K; ++q, ++filter) sum += row[q] * *filter;
      }
    }
    return sum;
  }

  const Problem problem_;
  Workers& workers_;
};

}  // namespace

extern const Variant kBlocked;
const Variant kBlocked = {
    "blocked",
    Backend::kCpu,
    AccuracyClass::kFp32,
    Track::kLesson,
    "The loops over the filter outside, a block of neighbouring outputs "
    "inside, in plain C++ on all cores.",
    "A block's sums do not wait for each other, and stay in registers while "
    "every input row and weight is used for all of them.",
    SupportsAll,
    [](const Problem& problem, const Epilogue&, const Resources& resources)
        -> absl::StatusOr<std::unique_ptr<Convolution>> {
      return std::make_unique<Blocked>(problem, *resources.workers);
    },
    /*estimate_ns=*/nullptr,
    /*detour=*/
    "It shows without a library or vectors that sums which do not wait for "
    "each other hide the latency of an addition.",
};

}  // namespace convlab::cpu
