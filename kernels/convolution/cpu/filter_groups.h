// Filters in groups, for kernels that compute several filters at a time.
#ifndef KERNELS_CONVOLUTION_CPU_FILTER_GROUPS_H_
#define KERNELS_CONVOLUTION_CPU_FILTER_GROUPS_H_

#include <cstdint>

namespace convlab::cpu {

// Reorders weights from [filter, tap] to [group, tap, filter of the group], so
// that the weights that are used together lie side by side. `k` and `grouped`
// hold filters * taps floats, where `taps` is C*K*K; every group but the last
// has `group` filters. The group of the filters from m on begins at
// grouped + m * taps.
inline void GroupFilters(const float* k, int64_t filters, int64_t taps,
                         int64_t group, float* grouped) {
  for (int64_t m = 0; m < filters; m += group) {
    const int64_t count = filters - m < group ? filters - m : group;
    for (int64_t f = 0; f < count; ++f) {
      for (int64_t t = 0; t < taps; ++t) {
        grouped[m * taps + t * count + f] = k[(m + f) * taps + t];
      }
    }
  }
}

}  // namespace convlab::cpu

#endif  // KERNELS_CONVOLUTION_CPU_FILTER_GROUPS_H_
