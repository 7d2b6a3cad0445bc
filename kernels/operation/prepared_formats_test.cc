// Compares prepared operations on half-precision tensors and tensors with the
// channels last with the definition in float64.
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "Eigen/Core"
#include "gtest/gtest.h"
#include "kernels/operation/prepared.h"
#include "kernels/operation/prepared_testing.h"

namespace convlab {
namespace {

// Halves that fill the beginning of a vector.
std::vector<float> PackHalves(const std::vector<float>& values) {
  std::vector<float> packed(values.size());
  auto* const halves = reinterpret_cast<Eigen::half*>(packed.data());
  for (size_t i = 0; i < values.size(); ++i) halves[i] = Eigen::half(values[i]);
  return packed;
}
std::vector<float> UnpackHalves(const std::vector<float>& packed) {
  const auto* const halves =
      reinterpret_cast<const Eigen::half*>(packed.data());
  std::vector<float> values(packed.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(halves[i]);
  }
  return values;
}

// Of [batch, channels, area], as [batch, area, channels], or the other way.
std::vector<float> Transposed(const std::vector<float>& values, int64_t batch,
                              int64_t rows, int64_t columns) {
  std::vector<float> to(values.size());
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t first = b * rows * columns;
    for (int64_t i = 0; i < rows * columns; ++i) {
      to[first + i % columns * rows + i / columns] = values[first + i];
    }
  }
  return to;
}

// Kernels of class fp16 are among them.
using PreparedFormats = Prepared;

// All numbers are small integers, which are exact as halves.
TEST_P(PreparedFormats, LayoutsAndHalves) {
  target_.accuracy = AccuracyClass::kFp16;
  Operation strided = MakeOperation(3, 4, 17, 23, 37, 3, 5);
  strided.stride_y = 2, strided.left = 3, strided.bias = true;
  strided.activation = Activation::kRelu;
  Operation pooled = MakeOperation(2, 3, 20, 20, 6, 3, 3);
  pooled.top = 1, pooled.bias = true, pooled.pool = {2, 2, false};
  // Large enough for tensor cores.
  Operation large = MakeOperation(9, 5, 33, 36, 21, 5, 5);
  large.top = large.left = 2;
  Operation padded = MakeOperation(16, 16, 32, 32, 32, 7, 7);
  padded.top = padded.bottom = padded.left = padded.right = 3;
  padded.activation = Activation::kRelu;
  Operation patches = MakeOperation(5, 3, 24, 28, 13, 4, 4);
  patches.stride_y = patches.stride_x = 4, patches.left = 2;
  int ran = 0;
  for (Operation o : {strided, pooled, large, padded, patches}) {
    const auto x = Integers(o.input_elements(), 2, 1);
    const auto k = Integers(o.kernel_elements(), 2, 2);
    const auto bias = Integers(o.filters, 2, 3);
    const auto expected =
        Finished(o, DefinitionOf(o, x, k), o.bias ? bias.data() : nullptr);
    for (const auto& [channels_last, halves] :
         {std::pair(true, false), std::pair(false, true),
          std::pair(true, true)}) {
      o.channels_last = channels_last, o.halves = halves;
      if (!Takes(o)) continue;
      ++ran;
      SCOPED_TRACE(ToString(o));
      const auto pack = [&](const std::vector<float>& values) {
        return o.halves ? PackHalves(values) : values;
      };
      auto y = Run(o,
                   pack(o.channels_last ? Transposed(x, o.batch, o.channels,
                                                     o.height * o.width)
                                        : x),
                   pack(k), pack(bias), /*offset=*/ran % 4);
      if (o.halves) y = UnpackHalves(y);
      if (o.channels_last) {
        y = Transposed(y, o.batch, o.output_height() * o.output_width(),
                       o.filters);
      }
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(y[i], o.halves ? static_cast<float>(Eigen::half(expected[i]))
                                 : expected[i])
            << i;
      }
    }
  }
  EXPECT_GE(ran, 9);
}

INSTANTIATE_TEST_SUITE_P(
    Targets, PreparedFormats,
    ::testing::Values(std::tuple(Backend::kCpu, ""),
                      std::tuple(Backend::kCpu, kGeneralKernel),
                      std::tuple(Backend::kCuda, ""),
                      std::tuple(Backend::kCuda, kGeneralKernel),
                      std::tuple(Backend::kCuda, "im2col_shared"),
                      std::tuple(Backend::kCuda, "tensor_wgmma"),
                      std::tuple(Backend::kCuda, "wgmma_fp16")),
    NameOfTarget);

}  // namespace
}  // namespace convlab
