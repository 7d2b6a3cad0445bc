#include "kernels/convolution/cpu/dense_lanes_plan.h"

#include <algorithm>

#include "common/math/rounding.h"

namespace convlab::cpu::dense_lanes {
namespace {

// 32 MB, which is more than the caches keep until the output is read.
constexpr int64_t kStreamedFloats = 8 << 20;

// Pieces of work per worker in a small batch, so that all of them end at about
// the same time.
constexpr int64_t kPiecesPerWorker = 4;

}  // namespace

int64_t FiltersOfGroup(const Problem& problem, const Epilogue& epilogue,
                       int64_t most, int64_t workers) {
  int64_t groups = CeilDivide(problem.filters, most);
  if (!epilogue.empty()) {
    groups =
        std::clamp(CeilDivide(workers, problem.batch), groups, problem.filters);
  }
  return CeilDivide(problem.filters, groups);
}

std::vector<Span> MakeSpans(const Problem& problem, int64_t lanes,
                            int64_t aligned) {
  const int64_t W = problem.width, W_out = problem.output_width();
  const int64_t positions = problem.output_height() * W_out;
  std::vector<Span> spans;
  for (int64_t i = 0; i < positions;
       i = i == 0 && aligned > 0 ? aligned : i + lanes) {
    // The last span ends with the plane and computes some outputs again.
    const int64_t position = std::min(i, positions - lanes);
    const int64_t row = position / W_out, column = position % W_out;
    const int64_t count = std::min(lanes, W_out - column);
    const int64_t first = row * W + column;
    const int64_t second = count < lanes ? (row + 1) * W - count : first;
    spans.push_back({position, first, second, count});
  }
  return spans;
}

std::vector<int64_t> MakeTaps(const Problem& problem) {
  std::vector<int64_t> taps;
  for (int64_t c = 0; c < problem.channels; ++c) {
    for (int64_t p = 0; p < problem.kernel_size; ++p) {
      for (int64_t q = 0; q < problem.kernel_size; ++q) {
        taps.push_back((c * problem.height + p) * problem.width + q);
      }
    }
  }
  return taps;
}

int64_t PartsPerImage(const Problem& problem, int64_t spans, int64_t workers) {
  const int64_t wanted = CeilDivide(kPiecesPerWorker * workers, problem.batch);
  return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, spans / 2));
}

bool ShouldStream(const Problem& problem, int64_t lanes) {
  return problem.output_height() * problem.output_width() % lanes == 0 &&
         problem.output_elements() >= kStreamedFloats;
}

}  // namespace convlab::cpu::dense_lanes
