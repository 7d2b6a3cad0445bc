// The convolution as a matrix product.
//
// Idea. Unroll the input (im2col): column j of U holds the C*K*K inputs that
// output position j is made of. Then Y = W * U, with W the weights as an
// M x C*K*K matrix, which they already are in memory. A matrix product is the
// best-tuned loop there is; Eigen's uses the SIMD units and keeps a tile of
// sums in registers, so that many additions are under way at once.
//
// Change from naive_parallel. A whole image unrolled is K*K times its size
// (fa19's second layer: 1.0 MB per image from 52 KB). Each worker therefore
// unrolls a block of columns that fits into its core's L2 cache, multiplies,
// and uses the same workspace again: the unrolled matrix never reaches memory,
// and the workspace does not grow with the batch.
//
// Bound. The product's arithmetic, with the instruction set that the compiler
// may assume: with SSE2, four lanes in two multipliers and two adders, 16 FLOPs
// per cycle. Copying C*K*K values per output position takes time besides, and
// each copied value serves only M = 12 or 24 products.
//
// Reached. More than half of that bound, and more of it with more filters
// (docs/journal/cpu_im2col_eigen.md).
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "Eigen/Core"
#include "common/math/rounding.h"
#include "kernels/convolution/convolution.h"

namespace convlab::cpu {
namespace {

constexpr int64_t kWorkspaceFloats = 128 << 10;  // 512 KiB per worker
// Together at most 64 MiB, or one column's: beyond 128 workers the blocks
// become smaller, and where not even a column per worker fits, fewer work.
constexpr int64_t kAllWorkspacesFloats = 16 << 20;

using Matrix =
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

class Im2colEigen : public Convolution {
 public:
  Im2colEigen(const Problem& problem, Workers& workers)
      : problem_(problem),
        workers_(workers),
        rows_(problem.channels * problem.kernel_size * problem.kernel_size),
        positions_(problem.output_height() * problem.output_width()),
        block_(std::clamp<int64_t>(
            std::min(kWorkspaceFloats, kAllWorkspacesFloats / workers.count()) /
                rows_,
            1, positions_)),
        blocks_(CeilDivide(positions_, block_)),
        workspaces_(
            std::clamp<int64_t>(
                kAllWorkspacesFloats / (rows_ * block_), 1,
                std::min<int64_t>(workers.count(), problem.batch * blocks_)),
            std::vector<float>(rows_ * block_)) {}

  absl::Status Run(const float* x, const float* k, float* y, Stream) override {
    const int64_t M = problem_.filters;
    const Eigen::Map<const Matrix> weights(k, M, rows_);
    const int64_t image = problem_.channels * problem_.height * problem_.width;
    std::atomic<int64_t> next{0};
    workers_.For(workspaces_.size(), 1, [&](int, int64_t workspace, int64_t) {
      float* unrolled = workspaces_[workspace].data();
      for (int64_t i; (i = next++) < problem_.batch * blocks_;) {
        const int64_t b = i / blocks_;
        const int64_t first = i % blocks_ * block_;
        const int64_t count = std::min(block_, positions_ - first);
        Unroll(x + b * image, first, count, unrolled);
        Eigen::Map<Matrix, 0, Eigen::OuterStride<>>(
            y + b * M * positions_ + first, M, count,
            Eigen::OuterStride<>(positions_))
            .noalias() =
            weights * Eigen::Map<const Matrix>(unrolled, rows_, count);
      }
    });
    return absl::OkStatus();
  }

 private:
  // Fills rows_ x count, row-major, with the inputs of the output positions
  // [first, first + count) of one image. Neighbouring positions of one output
  // row read neighbouring inputs, so each row of U is a few contiguous copies.
  void Unroll(const float* image, int64_t first, int64_t count,
              float* unrolled) const {
    const int64_t W_out = problem_.output_width();
    for (int64_t c = 0; c < problem_.channels; ++c) {
      for (int64_t p = 0; p < problem_.kernel_size; ++p) {
        for (int64_t q = 0; q < problem_.kernel_size; ++q) {
          int64_t h = first / W_out;
          int64_t w = first % W_out;
          for (int64_t left = count; left > 0; ++h, w = 0) {
            const int64_t run = std::min(left, W_out - w);
            const float* in =
                image + (c * problem_.height + h + p) * problem_.width + w + q;
            unrolled = std::copy_n(in, run, unrolled);
            left -= run;
          }
        }
      }
    }
  }

  const Problem problem_;
  Workers& workers_;
  const int64_t rows_;                          // C*K*K
  const int64_t positions_;                     // output positions of one image
  const int64_t block_;                         // columns unrolled at a time
  const int64_t blocks_;                        // of one image
  std::vector<std::vector<float>> workspaces_;  // one per worker at most
};

}  // namespace

extern const Variant kIm2colEigen;
const Variant kIm2colEigen = {
    "im2col_eigen",
    Backend::kCpu,
    AccuracyClass::kFp32,
    Track::kLesson,
    "Unrolls blocks of the input in cache and multiplies them with Eigen's "
    "matrix product, on all cores.",
    "A matrix product uses the SIMD units and keeps many sums under way, where "
    "the nested loops wait for one addition after another.",
    SupportsAll,
    [](const Problem& problem, const Epilogue&, const Resources& resources)
        -> absl::StatusOr<std::unique_ptr<Convolution>> {
      return std::make_unique<Im2colEigen>(problem, *resources.workers);
    },
};

}  // namespace convlab::cpu
