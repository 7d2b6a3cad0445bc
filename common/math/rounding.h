// Division of integers that rounds up. Light on purpose, because nvcc
// parses this header too; device code may call what is constexpr here.
//
//   const int64_t blocks = CeilDivide(elements, kThreads);
//   const int64_t padded = RoundUp(filters, 16);
#ifndef COMMON_MATH_ROUNDING_H_
#define COMMON_MATH_ROUNDING_H_

namespace convlab {

// The least integer that is not below a / b, for a >= 0 and b > 0. The result
// has the type of a + b, which must not overflow.
template <typename A, typename B>
constexpr auto CeilDivide(A a, B b) {
  return (a + b - 1) / b;
}

// The least multiple of `multiple` that is not below n, for n >= 0 and
// multiple > 0; otherwise as CeilDivide.
template <typename A, typename B>
constexpr auto RoundUp(A n, B multiple) {
  return CeilDivide(n, multiple) * multiple;
}

}  // namespace convlab

#endif  // COMMON_MATH_ROUNDING_H_
