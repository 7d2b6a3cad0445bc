// What an output is filled with before the run that writes it, so that elements
// that stay unwritten are found.
#ifndef KERNELS_CONVOLUTION_CHECKING_POISON_H_
#define KERNELS_CONVOLUTION_CHECKING_POISON_H_

#include <cstdint>

namespace convlab {

// Every float and every half of these bytes is a NaN, and none that arithmetic
// results in.
constexpr uint8_t kPoison = 0xff;
constexpr uint32_t kPoisonedWord = 0xffffffff;

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_POISON_H_
