// Compares prepared operations, by what is the fastest and by the general
// kernel, on the CPU and on a GPU, with the definition in float64.
#include "kernels/operation/prepared.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "Eigen/Core"
#include "absl/strings/str_cat.h"
#include "common/accuracy/contract.h"
#include "common/parallel/parallel.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

Workers& TestWorkers() {
  static Workers workers(2);
  return workers;
}

Operation MakeOperation(int64_t batch, int64_t channels, int64_t height,
                        int64_t width, int64_t filters, int64_t kernel_height,
                        int64_t kernel_width) {
  Operation o;
  o.batch = batch, o.channels = channels, o.height = height, o.width = width;
  o.filters = filters;
  o.kernel_height = kernel_height, o.kernel_width = kernel_width;
  return o;
}

struct Sums {
  std::vector<OutputReference> reference;
  std::vector<float> plain;  // by the plain loop in float32
};

// The definition. Padding is zeros that are multiplied, too.
Sums DefinitionOf(const Operation& o, const std::vector<float>& x,
                  const std::vector<float>& k) {
  Sums sums;
  sums.reference.resize(o.sums_elements());
  sums.plain.resize(o.sums_elements());
  const int64_t width = o.sums_width(), height = o.sums_height();
  TestWorkers().For(
      o.batch * o.filters * height, 8, [&](int, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t i = row % height, m = row / height % o.filters;
          const int64_t b = row / height / o.filters;
          for (int64_t j = 0; j < width; ++j) {
            OutputReference out = {0, 0, o.taps()};
            float plain = 0;
            const float* weight = k.data() + m * o.taps();
            for (int64_t c = 0; c < o.channels; ++c) {
              for (int64_t p = 0; p < o.kernel_height; ++p) {
                for (int64_t q = 0; q < o.kernel_width; ++q, ++weight) {
                  const int64_t h = i * o.stride_y + p - o.top;
                  const int64_t w = j * o.stride_x + q - o.left;
                  const bool inside =
                      h >= 0 && h < o.height && w >= 0 && w < o.width;
                  const float in =
                      inside
                          ? x[((b * o.channels + c) * o.height + h) * o.width +
                              w]
                          : 0;
                  out.y64 += double{in} * *weight;
                  out.magnitude += std::abs(double{in} * *weight);
                  plain += in * *weight;
                }
              }
            }
            sums.reference[row * width + j] = out;
            sums.plain[row * width + j] = plain;
          }
        }
      });
  return sums;
}

// y in float64.
std::vector<double> Finished(const Operation& o, const Sums& sums,
                             const float* bias) {
  std::vector<double> y(sums.reference.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = sums.reference[i].y64;
  const Problem problem = {o.batch,        1,         o.sums_height(),
                           o.sums_width(), o.filters, 1};
  return ReferenceEpilogue(problem, {bias, o.activation, o.pool}, std::move(y),
                           TestWorkers());
}

std::vector<float> Integers(int64_t count, int most, int seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value =
        static_cast<float>(static_cast<int>(random() % (2 * most + 1)) - most);
  }
  return values;
}

std::vector<float> Uniform(int64_t count, int seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

// The backend, and the kernel that is asked for.
class Prepared
    : public ::testing::TestWithParam<std::tuple<Backend, const char*>> {
 protected:
  void SetUp() override {
    target_.backend = std::get<0>(GetParam());
    target_.kernel = std::get<1>(GetParam());
    target_.resources.workers = &TestWorkers();
    if (target_.backend == Backend::kCpu) return;
    const auto device = cuda::FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }

  // Whether a variant that is asked for by name takes the operation; all else
  // takes every operation.
  bool Takes(const Operation& o) {
    return target_.kernel.empty() || target_.kernel == kGeneralKernel ||
           !absl::IsUnimplemented(PrepareOperation(o, target_).status());
  }

  // y. On a GPU no tensor but x of an even `offset` is aligned.
  std::vector<float> Run(const Operation& o, const std::vector<float>& x,
                         const std::vector<float>& k,
                         const std::vector<float>& bias, int offset = 0) {
    std::vector<float> y(o.output_elements(),
                         std::numeric_limits<float>::quiet_NaN());
    auto prepared = PrepareOperation(o, target_);
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    if (!prepared.ok()) return y;
    if (!target_.kernel.empty()) {
      EXPECT_EQ((*prepared)->kernel(), target_.kernel);
    }
    const float* const no_bias = nullptr;
    if (target_.backend == Backend::kCpu) {
      EXPECT_EQ((*prepared)->workspace_bytes(), 0);
      const absl::Status ran =
          (*prepared)->Run({x.data(), k.data(), o.bias ? bias.data() : no_bias,
                            y.data(), nullptr},
                           nullptr);
      EXPECT_TRUE(ran.ok()) << ran;
      return y;
    }
    RunOnDevice(**prepared, o, x, k, bias, offset, y);
    return y;
  }

 private:
  static void RunOnDevice(PreparedOperation& prepared, const Operation& o,
                          const std::vector<float>& x,
                          const std::vector<float>& k,
                          const std::vector<float>& bias, int offset,
                          std::vector<float>& y) {
    std::vector<cuda::DeviceBuffer> buffers;
    const auto upload = [&](const std::vector<float>& values) -> float* {
      const int64_t bytes = static_cast<int64_t>(values.size() * sizeof(float));
      auto buffer = cuda::DeviceBuffer::Allocate(bytes + 16);
      if (!buffer.ok()) return nullptr;
      float* const at = buffer->floats() + offset;
      if (!cuda::CopyToDevice(at, values.data(), bytes).ok()) return nullptr;
      buffers.push_back(*std::move(buffer));
      return at;
    };
    const float* const dx = upload(x);
    const float* const dk = upload(k);
    const float* const dbias = o.bias ? upload(bias) : nullptr;
    float* const dy = upload(y);
    // The workspace is full of NaN, and nothing behind its end is written.
    const int64_t bytes = prepared.workspace_bytes();
    auto workspace = cuda::DeviceBuffer::Allocate(bytes + 256);
    ASSERT_TRUE(dx != nullptr && dk != nullptr && dy != nullptr &&
                workspace.ok());
    ASSERT_TRUE(cuda::FillBytes(workspace->data(), 0xff, bytes + 256).ok());
    const absl::Status ran =
        prepared.Run({dx, dk, dbias, dy, workspace->data()}, nullptr);
    ASSERT_TRUE(ran.ok()) << ran;
    ASSERT_TRUE(cuda::Synchronize().ok());
    const int64_t y_bytes = static_cast<int64_t>(y.size() * sizeof(float));
    ASSERT_TRUE(cuda::CopyToHost(y.data(), dy, y_bytes).ok());
    std::vector<unsigned char> behind(256);
    ASSERT_TRUE(cuda::CopyToHost(behind.data(),
                                 static_cast<char*>(workspace->data()) + bytes,
                                 256)
                    .ok());
    EXPECT_EQ(behind, std::vector<unsigned char>(256, 0xff));

    // Prepared filters give the same, and the others are not needed any more.
    auto filters = cuda::DeviceBuffer::Allocate(prepared.filter_bytes());
    ASSERT_TRUE(filters.ok()) << filters.status();
    ASSERT_TRUE(prepared.PrepareFilters(dk, filters->data(), nullptr).ok());
    ASSERT_TRUE(cuda::Synchronize().ok());
    ASSERT_TRUE(cuda::FillBytes(const_cast<float*>(dk), 0xff,
                                static_cast<int64_t>(k.size() * sizeof(float)))
                    .ok());
    ASSERT_TRUE(cuda::FillBytes(dy, 0xff, y_bytes).ok());
    const absl::Status again = prepared.RunPrepared(
        {dx, filters->data(), dbias, dy, workspace->data()}, nullptr);
    ASSERT_TRUE(again.ok()) << again;
    ASSERT_TRUE(cuda::Synchronize().ok());
    std::vector<float> same(y.size());
    ASSERT_TRUE(cuda::CopyToHost(same.data(), dy, y_bytes).ok());
    // Halves fill the beginning.
    EXPECT_EQ(std::memcmp(same.data(), y.data(),
                          o.element_bytes() * o.output_elements()),
              0);
  }

 protected:
  Target target_;
};

// Operations of all kinds; calls function(operation) for each that is valid.
template <typename Function>
void ForOperations(const Function& function) {
  constexpr int64_t kImages[][4] = {// batch, channels, height, width
                                    {1, 1, 9, 11},
                                    {3, 3, 16, 16},
                                    {2, 5, 7, 37}};
  constexpr int64_t kFilters[][3] = {// number, height, width
                                     {1, 1, 1},
                                     {7, 3, 3},
                                     {13, 5, 2},
                                     {33, 1, 4},
                                     {70, 7, 7}};
  constexpr int64_t kStrides[][2] = {{1, 1}, {2, 2}, {1, 3}, {4, 4}};
  constexpr int64_t kPadding[][4] = {{0, 0, 0, 0}, {1, 1, 1, 1}, {3, 0, 2, 5}};
  constexpr MaxPool kPools[] = {
      {}, {2, 2, false}, {}, {3, 2, true}, {2, 1, false}};
  int count = 0;
  for (const auto& image : kImages) {
    for (const auto& filter : kFilters) {
      for (const auto& stride : kStrides) {
        for (const auto& padding : kPadding) {
          Operation o = MakeOperation(image[0], image[1], image[2], image[3],
                                      filter[0], filter[1], filter[2]);
          o.stride_y = stride[0], o.stride_x = stride[1];
          o.top = padding[0], o.bottom = padding[1];
          o.left = padding[2], o.right = padding[3];
          // Each combination meets others.
          o.pool = kPools[count % 5];
          o.bias = count % 3 == 0;
          o.activation = count % 2 == 0 ? Activation::kNone : Activation::kRelu;
          ++count;
          if (!CheckOperation(o).ok()) o.pool = {};
          if (CheckOperation(o).ok()) function(o);
        }
      }
    }
  }
}

TEST_P(Prepared, IntegersAreExact) {
  int ran = 0;
  ForOperations([&](const Operation& o) {
    if (HasFailure() || !Takes(o)) return;
    SCOPED_TRACE(ToString(o));
    const auto x = Integers(o.input_elements(), 8, 1);
    const auto k = Integers(o.kernel_elements(), 8, 2);
    const auto bias = Integers(o.filters, 20, 3);
    const std::vector<double> expected =
        Finished(o, DefinitionOf(o, x, k), o.bias ? bias.data() : nullptr);
    const std::vector<float> y = Run(o, x, k, bias, ++ran % 4);
    ASSERT_EQ(y.size(), expected.size());
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], expected[i]) << "output element " << i;
    }
  });
  // Variants take stride 1 and square filters, wgmma_strips few channels.
  const bool takes_all =
      target_.kernel.empty() || target_.kernel == kGeneralKernel;
  EXPECT_GE(ran, takes_all ? 100 : 8);
}

TEST_P(Prepared, KeepsTheContractOfClassFp32) {
  ForOperations([&](Operation o) {
    if (HasFailure() || !Takes(o)) return;
    o.pool = {}, o.bias = false, o.activation = Activation::kNone;
    SCOPED_TRACE(ToString(o));
    auto x = Uniform(o.input_elements(), 4);
    // Images and filters of many scales.
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::ldexp(x[i], i / 50 % 40);
    const auto k = Uniform(o.kernel_elements(), 5);
    const Sums sums = DefinitionOf(o, x, k);
    const std::vector<float> y = Run(o, x, k, {});
    double worst = 0, plain = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      worst = std::max(worst, ErrorFactor(y[i], sums.reference[i]));
      plain = std::max(plain, ErrorFactor(sums.plain[i], sums.reference[i]));
    }
    EXPECT_LE(worst, AllowedFactor(plain));
  });
}

TEST_P(Prepared, TanhOfFloats) {
  Operation o = MakeOperation(2, 3, 20, 21, 10, 3, 3);
  o.top = o.left = 1;
  o.activation = Activation::kTanh, o.bias = true;
  for (const MaxPool& pool : {MaxPool{}, MaxPool{2, 2, false}}) {
    o.pool = pool;
    const auto x = Uniform(o.input_elements(), 6);
    const auto k = Uniform(o.kernel_elements(), 7);
    const auto bias = Uniform(o.filters, 8);
    const auto expected = Finished(o, DefinitionOf(o, x, k), bias.data());
    const auto y = Run(o, x, k, bias);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 3e-6);
  }
}

// With an infinite weight the zeros of the padding become NaN.
TEST_P(Prepared, InfinitiesAndNanAreWhereTheDefinitionHasThem) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t stride : {1, 2}) {
    Operation o = MakeOperation(2, 3, 14, 15, 9, 3, 3);
    o.stride_y = o.stride_x = stride;
    o.top = o.bottom = o.left = o.right = 1;
    if (!Takes(o)) continue;
    auto x = Integers(o.input_elements(), 8, 1);
    auto k = Integers(o.kernel_elements(), 8, 2);
    x[50] = kInfinity, x[700] = -kInfinity;
    x.back() = std::numeric_limits<float>::quiet_NaN();
    k[30] = kInfinity;
    const auto expected = Finished(o, DefinitionOf(o, x, k), nullptr);
    const auto y = Run(o, x, k, {});
    for (size_t i = 0; i < y.size(); ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(y[i])) << "output element " << i;
      } else {
        ASSERT_EQ(y[i], expected[i]) << "output element " << i;
      }
    }
  }
}

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
  int ran = 0;
  for (Operation o : {strided, pooled, large, padded}) {
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
                   pack(k), pack(bias));
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

// Filters that do not fit into a GPU's shared memory: all channels, one
// channel, a row.
TEST_P(Prepared, LargeFilters) {
  Operation many = MakeOperation(2, 40, 12, 20, 70, 5, 5);
  many.stride_x = 2, many.left = 2;
  for (const Operation& o : {many, MakeOperation(1, 2, 205, 62, 20, 200, 60),
                             MakeOperation(1, 1, 2, 9010, 3, 1, 9000)}) {
    if (!Takes(o)) continue;
    SCOPED_TRACE(ToString(o));
    const auto x = Integers(o.input_elements(), 3, 1);
    const auto k = Integers(o.kernel_elements(), 3, 2);
    const auto expected = Finished(o, DefinitionOf(o, x, k), nullptr);
    const auto y = Run(o, x, k, {});
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], expected[i]) << i;
  }
}

TEST_P(Prepared, FirstLayerOfAKnownNetwork) {
  Operation o = MakeOperation(1, 3, 224, 224, 64, 7, 7);
  o.stride_y = o.stride_x = 2;
  o.top = o.bottom = o.left = o.right = 3;
  o.bias = true, o.activation = Activation::kRelu;
  o.pool = {3, 2, true};
  if (!Takes(o)) GTEST_SKIP() << "takes no strides";
  const auto x = Integers(o.input_elements(), 8, 1);
  const auto k = Integers(o.kernel_elements(), 8, 2);
  const auto bias = Integers(o.filters, 20, 3);
  const auto expected = Finished(o, DefinitionOf(o, x, k), bias.data());
  const auto y = Run(o, x, k, bias);
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], expected[i]) << i;
}

std::string NameOfTarget(
    const ::testing::TestParamInfo<std::tuple<Backend, const char*>>& test) {
  const std::string kernel = std::get<1>(test.param);
  return absl::StrCat(Name(std::get<0>(test.param)), "_",
                      kernel.empty() ? "fastest" : kernel);
}

// "" is the choice of the fastest; the others have their own ways with an
// epilogue and with memory.
INSTANTIATE_TEST_SUITE_P(
    Targets, Prepared,
    ::testing::Values(std::tuple(Backend::kCpu, ""),
                      std::tuple(Backend::kCpu, kGeneralKernel),
                      std::tuple(Backend::kCuda, ""),
                      std::tuple(Backend::kCuda, kGeneralKernel),
                      std::tuple(Backend::kCuda, "direct_tiled"),
                      std::tuple(Backend::kCuda, "few_images"),
                      std::tuple(Backend::kCuda, "im2col_shared"),
                      std::tuple(Backend::kCuda, "tensor_split"),
                      std::tuple(Backend::kCuda, "tensor_strips"),
                      std::tuple(Backend::kCuda, "tensor_wgmma"),
                      std::tuple(Backend::kCuda, "wgmma_strips")),
    NameOfTarget);
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

TEST(PrepareOperation, SaysWhyNot) {
  Target target;
  target.resources.workers = &TestWorkers();
  Operation o = MakeOperation(1, 1, 8, 8, 1, 3, 3);
  target.kernel = "no_such";
  EXPECT_EQ(PrepareOperation(o, target).status().code(),
            absl::StatusCode::kInvalidArgument);
  target.kernel = "naive";
  EXPECT_TRUE(PrepareOperation(o, target).ok());
  o.stride_x = 2;
  EXPECT_EQ(PrepareOperation(o, target).status().code(),
            absl::StatusCode::kUnimplemented);
  o.stride_x = 1, o.activation = Activation::kTanh;
  EXPECT_EQ(PrepareOperation(o, target).status().code(),
            absl::StatusCode::kUnimplemented);
  target.backend = Backend::kCuda;
  target.kernel = "";
  target.resources.device = 1000;
  EXPECT_EQ(PrepareOperation(o, target).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace convlab
