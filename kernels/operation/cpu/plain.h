// Tensors of halves, and with channels last, as the kernels on the CPU have
// them: NCHW of float32.
#ifndef KERNELS_OPERATION_CPU_PLAIN_H_
#define KERNELS_OPERATION_CPU_PLAIN_H_

#include <cstdint>

#include "common/parallel/parallel.h"

namespace convlab::cpu {

// A tensor of so many images; `area` is height * width.
struct Layout {
  int64_t batch, channels, area;
  bool channels_last, halves;
};

void MakePlain(const Layout& layout, const void* tensor, float* plain,
               Workers& workers);
// Rounds to the nearest half, ties to even.
void StorePlain(const Layout& layout, const float* plain, void* tensor,
                Workers& workers);

}  // namespace convlab::cpu

#endif  // KERNELS_OPERATION_CPU_PLAIN_H_
