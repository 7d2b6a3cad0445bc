// Division of integers by numbers that a plan knows, as a multiplication. Plans
// compute the factors on the host; kernels divide, as may the plans' tests.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_DIVISION_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_DIVISION_H_

#include <cstdint>

namespace convlab::cuda {

// The factor for Divide: 2^32 / d rounded up, or 0 in place of 2^32 for d = 1.
constexpr uint32_t DivisionMagic(int d) {
  return d == 1 ? 0 : ((uint64_t{1} << 32) + d - 1) / d;
}

// n / d for magic = DivisionMagic(d). Exact for n * d < 2^32.
constexpr int Divide(uint32_t n, uint32_t magic) {
#ifdef __CUDA_ARCH__
  return magic == 0 ? n : __umulhi(n, magic);  // fewer instructions
#else
  return magic == 0 ? n : (uint64_t{n} * magic) >> 32;
#endif
}

// The factor for DivideDoubled: 2^31 / d rounded up.
constexpr uint32_t DoubledMagic(int d) {
  return ((uint64_t{1} << 31) + d - 1) / d;
}
// n / d from n2 = 2 * n for magic = DoubledMagic(d): one multiplication, and no
// branch for d = 1. Exact for n * d < 2^31.
constexpr int DivideDoubled(uint32_t n2, uint32_t magic) {
#ifdef __CUDA_ARCH__
  return __umulhi(n2, magic);
#else
  return (uint64_t{n2} * magic) >> 32;
#endif
}

// n / d for every n from 0 to 2^31 - 1, for a shift more. With 2^l the least
// power of two that is not below d, `magic` is 2^(31+l) / d rounded up. Times d
// it exceeds 2^(31+l) by e < d, and e * n < 2^(31+l) keeps the quotient right.
struct Divisor {
  uint32_t magic = uint32_t{1} << 31;
  int shift = 31;

  Divisor() = default;
  explicit constexpr Divisor(int d) {
    int l = 0;
    while ((int64_t{1} << l) < d) ++l;
    shift = 31 + l;
    magic = ((uint64_t{1} << shift) + d - 1) / d;
  }
  constexpr int Quotient(int n) const {
    return static_cast<int>(static_cast<uint64_t>(n) * magic >> shift);
  }
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_DIVISION_H_
