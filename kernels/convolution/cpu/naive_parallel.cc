// The same loops on every core.
//
// Idea. An output plane (one image, one output channel) depends on no other, so
// planes are handed out to the cores as these become free.
//
// Change from naive. The two outer loops become one loop over B*M planes that
// is shared among the workers; the code inside is the same.
//
// Bound. Still one addition at a time within an output, but on each core: the
// gain is at most the number of cores, as long as there are more planes than
// cores.
//
// Reached. Less than the number of virtual cores, of which two share the units
// of one physical core (docs/journal/cpu_naive_parallel.md).
#include <cstdint>
#include <memory>

#include "kernels/convolution/convolution.h"

namespace convlab::cpu {
namespace {

class NaiveParallel : public Convolution {
 public:
  NaiveParallel(const Problem& problem, Workers& workers)
      : problem_(problem), workers_(workers) {}

  absl::Status Run(const float* x, const float* k, float* y, Stream) override {
    const int64_t C = problem_.channels;
    const int64_t H = problem_.height, W = problem_.width;
    const int64_t M = problem_.filters, K = problem_.kernel_size;
    const int64_t H_out = problem_.output_height();
    const int64_t W_out = problem_.output_width();
    const auto plane = [=](int64_t b, int64_t m) {
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
    };
    workers_.For(problem_.batch * M, 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) plane(i / M, i % M);
    });
    return absl::OkStatus();
  }

 private:
  const Problem problem_;
  Workers& workers_;
};

}  // namespace

extern const Variant kNaiveParallel;
const Variant kNaiveParallel = {
    "naive_parallel",
    Backend::kCpu,
    AccuracyClass::kFp32,
    Track::kLesson,
    "The nested loops, the planes of the output shared among all cores.",
    "Output planes are independent, so the work divides by the cores.",
    SupportsAll,
    [](const Problem& problem, const Epilogue&, const Resources& resources)
        -> absl::StatusOr<std::unique_ptr<Convolution>> {
      return std::make_unique<NaiveParallel>(problem, *resources.workers);
    },
};

}  // namespace convlab::cpu
