// Division of integers that rounds up. This header is small because nvcc parses
// it too; device code may call these constexpr functions.
//
//   const int64_t blocks = CeilDivide(elements, kThreads);
//   const int64_t padded = RoundUp(filters, 16);
#ifndef COMMON_MATH_ROUNDING_H_
#define COMMON_MATH_ROUNDING_H_

namespace convlab {

// a / b rounded up, for a >= 0 and b > 0. The result has the type of a + b,
// which must not overflow.
template <typename A, typename B>
constexpr auto CeilDivide(A a, B b) {
  return (a + b - 1) / b;
}

// n rounded up to a multiple of `multiple`, for n >= 0 and multiple > 0; types
// are as in CeilDivide.
template <typename A, typename B>
constexpr auto RoundUp(A n, B multiple) {
  return CeilDivide(n, multiple) * multiple;
}

}  // namespace convlab

#endif  // COMMON_MATH_ROUNDING_H_
