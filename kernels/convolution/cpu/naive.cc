// The definition, written down.
//
// Idea. One loop per index of the formula: four that choose an output element
// and three that sum its products. This is what the course hands its students,
// on one thread, and what every later variant is compared with.
//
// Cost. 2*C*K*K FLOPs per output element. fa19's second convolution on 10,000
// images takes 121 GFLOP but its tensors only 1.3 GB, so memory is not the
// limit.
//
// Bound. Within one output each addition waits for the one before. A float sum
// may not be reordered, so the compiler can neither vectorize the inner loop
// nor split its sum: one product per latency of an addition. A core that
// executes out of order starts the next output's sum while one still waits,
// which helps short sums more than long ones.
//
// Reached. That bound, and somewhat more where sums are short
// (docs/journal/cpu_naive.md).
#include <cstdint>
#include <memory>

#include "kernels/convolution/convolution.h"

namespace convlab::cpu {
namespace {

class Naive : public Convolution {
 public:
  explicit Naive(const Problem& problem) : problem_(problem) {}

  absl::Status Run(const float* x, const float* k, float* y, Stream) override {
    const int64_t B = problem_.batch, C = problem_.channels;
    const int64_t H = problem_.height, W = problem_.width;
    const int64_t M = problem_.filters, K = problem_.kernel_size;
    const int64_t H_out = problem_.output_height();
    const int64_t W_out = problem_.output_width();
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t m = 0; m < M; ++m) {
        for (int64_t h = 0; h < H_out; ++h) {
          for (int64_t w = 0; w < W_out; ++w) {
            float sum = 0;
            for (int64_t c = 0; c < C; ++c) {
              for (int64_t p = 0; p < K; ++p) {
                for (int64_t q = 0; q < K; ++q) {
                  sum += x[((b * C + c) * H + h + p) * W + w + q] *
                         k[((m * C + c) * K + p) * K + q];
                }
              }
            }
            y[((b * M + m) * H_out + h) * W_out + w] = sum;
          }
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  const Problem problem_;
};

}  // namespace

extern const Variant kNaive;
const Variant kNaive = {
    "naive",
    Backend::kCpu,
    AccuracyClass::kFp32,
    Track::kLesson,
    "The nested loops of the definition on one thread.",
    "The starting point: nothing is done to be fast.",
    SupportsAll,
    [](const Problem& problem, const Epilogue&,
       const Resources&) -> absl::StatusOr<std::unique_ptr<Convolution>> {
      return std::make_unique<Naive>(problem);
    },
};

}  // namespace convlab::cpu
