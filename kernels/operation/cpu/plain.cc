#include "kernels/operation/cpu/plain.h"

#include <functional>

#include "Eigen/Core"

namespace convlab::cpu {
namespace {

// Calls function(place in NCHW, place in the tensor) for all elements, those of
// an image by one worker.
template <typename Function>
void ForElements(const Layout& layout, Workers& workers,
                 const Function& function) {
  const int64_t image = layout.channels * layout.area;
  const auto work = [&](int, int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t plain = b * image;
      for (int64_t c = 0; c < layout.channels; ++c) {
        for (int64_t i = 0; i < layout.area; ++i, ++plain) {
          function(plain, layout.channels_last
                              ? b * image + i * layout.channels + c
                              : plain);
        }
      }
    }
  };
  // By reference, which std::function keeps without memory of its own.
  workers.For(layout.batch, 1, std::cref(work));
}

}  // namespace

void MakePlain(const Layout& layout, const void* tensor, float* plain,
               Workers& workers) {
  ForElements(layout, workers, [&](int64_t to, int64_t from) {
    plain[to] =
        layout.halves
            ? static_cast<float>(static_cast<const Eigen::half*>(tensor)[from])
            : static_cast<const float*>(tensor)[from];
  });
}

void StorePlain(const Layout& layout, const float* plain, void* tensor,
                Workers& workers) {
  ForElements(layout, workers, [&](int64_t from, int64_t to) {
    if (layout.halves) {
      static_cast<Eigen::half*>(tensor)[to] = Eigen::half(plain[from]);
    } else {
      static_cast<float*>(tensor)[to] = plain[from];
    }
  });
}

}  // namespace convlab::cpu
