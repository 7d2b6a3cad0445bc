// Convolutions with their pooling as networks need them: right for each image
// by itself, and the same bits in any batch (GpuStages).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

using cuda::DeviceBuffer;

constexpr MaxPool kHalve{2, 2, false};

struct Case {
  int channels, size, filters, kernel_size;
  MaxPool pool;
};

// A case with an activation.
struct Pooled {
  Case of;
  Activation activation;

  Problem At(int64_t images) const {
    return {images, of.channels, of.size, of.size, of.filters, of.kernel_size};
  }
  int convolved() const { return of.size - of.kernel_size + 1; }
  int pooled() const { return static_cast<int>(of.pool.Output(convolved())); }
  int64_t image_floats() const { return At(1).channels * of.size * of.size; }
  int weights() const {  // of a filter
    return of.channels * of.kernel_size * of.kernel_size;
  }
};

// The variant that GpuStages takes, whatever the number of images.
const Variant& Pooling() {
  return **FindVariant(Backend::kCuda, "tensor_wgmma");
}

// What the numbers are like.
enum class Data { kUniform, kIntegers, kScales, kFaint, kSpecial };

struct Values {
  std::vector<float> in, filters, bias;
};

Values MakeValues(const Pooled& shape, int64_t images, Data data) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::uniform_int_distribution<int> integer(-8, 8);
  Values values;
  const auto fill = [&](int64_t count, std::vector<float>* to) {
    to->resize(count);
    for (float& v : *to) {
      v = data == Data::kIntegers ? integer(random) : uniform(random);
    }
  };
  const int64_t of_image = shape.image_floats();
  fill(images * of_image, &values.in);
  fill(int64_t{shape.of.filters} * shape.weights(), &values.filters);
  fill(shape.of.filters, &values.bias);
  std::vector<float>& in = values.in;
  for (int64_t i = 0; i < images * of_image; ++i) {
    const int64_t image = i / of_image;
    // An image's largest value beside small ones, and images far apart.
    if (data == Data::kFaint && i % of_image > 5) in[i] *= 1e-12f;
    if (data == Data::kScales) in[i] = std::ldexp(in[i], image % 2 * 90 - 60);
  }
  for (size_t i = 0; data == Data::kScales && i < values.filters.size(); ++i) {
    const int filter = static_cast<int>(i / shape.weights());
    values.filters[i] = std::ldexp(values.filters[i], filter * 7 % 40 - 20);
  }
  if (data == Data::kSpecial) {
    in[1] = std::numeric_limits<float>::infinity();
    in[in.size() - 2] = std::numeric_limits<float>::quiet_NaN();
    // A blank image, if there are so many.
    if (images > 2) std::fill_n(in.begin() + of_image, of_image, 0);
  }
  return values;
}

// Convolves the first `images` images, with filters that are prepared.
std::vector<float> Convolved(const Pooled& shape, const Values& values,
                             int64_t images, bool bias) {
  const auto upload = [](const std::vector<float>& from) {
    auto buffer = DeviceBuffer::Allocate(from.size() * sizeof(float));
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_TRUE(
        cuda::CopyToDevice(buffer->data(), from.data(), buffer->bytes()).ok());
    return *std::move(buffer);
  };
  const DeviceBuffer in = upload(values.in), filters = upload(values.filters);
  const DeviceBuffer bias_values = upload(values.bias);
  const Epilogue epilogue = {bias ? bias_values.floats() : nullptr,
                             shape.activation, shape.of.pool};
  auto convolution = Pooling().Create(shape.At(images), Resources(), epilogue);
  EXPECT_TRUE(convolution.ok()) << convolution.status();
  auto prepared = DeviceBuffer::Allocate((*convolution)->filter_bytes());
  std::vector<float> result(epilogue.output_elements(shape.At(images)));
  auto out = DeviceBuffer::Allocate(result.size() * sizeof(float));
  EXPECT_TRUE(prepared.ok() && out.ok());
  EXPECT_TRUE((*convolution)
                  ->PrepareFilters(filters.floats(), prepared->data(), nullptr)
                  .ok());
  EXPECT_TRUE(cuda::FillBytes(out->data(), 0xff, out->bytes()).ok());
  EXPECT_TRUE(cuda::Synchronize().ok());
  EXPECT_TRUE(
      (*convolution)
          ->RunPrepared(in.floats(), prepared->data(), out->floats(), nullptr)
          .ok());
  EXPECT_TRUE(cuda::CopyToHost(result.data(), out->data(), out->bytes()).ok());
  return result;
}

// A window's largest sum, with the bias, and the largest of its sums of
// magnitudes.
struct Expected {
  double value, magnitude;
};
Expected Window(const Pooled& shape, const Values& values, int64_t image, int m,
                int h, int w, bool bias) {
  const Case& problem = shape.of;
  const int K = problem.kernel_size, pool = problem.pool.size;
  Expected all = {-std::numeric_limits<double>::infinity(), 0};
  for (int y = h * pool; y < std::min((h + 1) * pool, shape.convolved()); ++y) {
    for (int x = w * pool; x < std::min((w + 1) * pool, shape.convolved());
         ++x) {
      double sum = bias ? values.bias[m] : 0, magnitude = std::fabs(sum);
      for (int c = 0; c < problem.channels; ++c) {
        for (int i = 0; i < K * K; ++i) {
          const int row = y + i / K, column = x + i % K;
          const double term =
              double{values.in[((image * problem.channels + c) * problem.size +
                                row) *
                                   problem.size +
                               column]} *
              values.filters[(m * problem.channels + c) * K * K + i];
          sum += term;
          magnitude += std::fabs(term);
        }
      }
      all.value = sum > all.value || std::isnan(sum) ? sum : all.value;
      all.magnitude = std::max(all.magnitude, magnitude);
    }
  }
  return all;
}

double Activated(Activation activation, double v) {
  if (activation == Activation::kTanh) return std::tanh(v);
  return activation == Activation::kRelu && v < 0 ? 0 : v;
}

void ExpectRight(const Pooled& shape, const Values& values, int64_t images,
                 bool bias, Data data, const std::vector<float>& found) {
  const Activation activation = shape.activation;
  const int pooled = shape.pooled();
  const bool exact = data == Data::kIntegers && activation != Activation::kTanh;
  for (size_t i = 0; i < found.size(); ++i) {
    const int place = static_cast<int>(i % (pooled * pooled));
    const int64_t plane = static_cast<int64_t>(i) / (pooled * pooled);
    const int m = static_cast<int>(plane % shape.of.filters);
    const Expected expected = Window(shape, values, plane / shape.of.filters, m,
                                     place / pooled, place % pooled, bias);
    const double value = Activated(activation, expected.value);
    if (std::isnan(value) || std::isinf(value)) {
      ASSERT_EQ(std::isnan(value), std::isnan(found[i])) << i;
      ASSERT_TRUE(std::isnan(value) || found[i] == value) << i;
      continue;
    }
    const double allowed =
        exact ? 0
              : 16 * 0x1p-24 * expected.magnitude + shape.weights() * 0x1p-149 +
                    (activation == Activation::kTanh ? 0x1p-22 : 0);
    ASSERT_LE(std::fabs(found[i] - value), allowed)
        << "value " << i << " of " << images << " images";
  }
}

class PooledConvolutionTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!cuda::FindDevice().ok()) GTEST_SKIP() << "for a GPU";
    const Problem problem = Pooled{GetParam(), Activation::kNone}.At(1);
    const absl::Status status = Pooling().supports(problem, Resources());
    if (!status.ok()) GTEST_SKIP() << status;
    const Epilogue epilogue = {nullptr, Activation::kNone, GetParam().pool};
    ASSERT_TRUE(Pooling().Check(problem, Resources(), epilogue).ok());
  }
};

TEST_P(PooledConvolutionTest, IsWhatTheDefinitionGives) {
  for (const Activation activation :
       {Activation::kNone, Activation::kTanh, Activation::kRelu}) {
    const Pooled shape = {GetParam(), activation};
    for (const Data data : {Data::kUniform, Data::kIntegers, Data::kScales,
                            Data::kFaint, Data::kSpecial}) {
      SCOPED_TRACE(absl::StrCat("activation ", static_cast<int>(activation),
                                ", data ", static_cast<int>(data)));
      constexpr int64_t kImages = 5;
      const bool bias = data != Data::kScales;
      const Values values = MakeValues(shape, kImages, data);
      ExpectRight(shape, values, kImages, bias, data,
                  Convolved(shape, values, kImages, bias));
      if (HasFatalFailure()) return;
    }
  }
}

// Whatever the number of images, and so which of them a block has.
TEST_P(PooledConvolutionTest, BitsAreTheSameInAnyBatch) {
  const Pooled shape = {GetParam(), Activation::kRelu};
  // Several images for each block.
  constexpr int64_t kMost = 2111;
  for (const Data data : {Data::kUniform, Data::kScales, Data::kFaint}) {
    SCOPED_TRACE(absl::StrCat("data ", static_cast<int>(data)));
    const Values values = MakeValues(shape, kMost, data);
    const std::vector<float> all = Convolved(shape, values, kMost, true);
    EXPECT_EQ(Convolved(shape, values, kMost, true), all);
    for (const int64_t images : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 133, 1001}) {
      const std::vector<float> some = Convolved(shape, values, images, true);
      ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin()))
          << images << " images";
    }
  }
}

// Images that lose bits, or cannot be scaled, beside others of their tile.
TEST_P(PooledConvolutionTest, AnImagesBitsDoNotDependOnItsNeighbours) {
  const Pooled shape = {GetParam(), Activation::kRelu};
  constexpr int64_t kImages = 2111;
  Values values = MakeValues(shape, kImages, Data::kUniform);
  const std::vector<float> before = Convolved(shape, values, kImages, true);
  const int64_t of_image = shape.image_floats();
  const auto spoiled = [](int64_t image) { return image % 5 == 1; };
  for (int64_t image = 0; image < kImages; ++image) {
    if (!spoiled(image)) continue;
    float* const own = &values.in[image * of_image];
    if (image % 2 == 0) own[1] = std::numeric_limits<float>::infinity();
    for (int64_t i = 6; i < of_image; ++i) own[i] *= 1e-12f;
  }
  const std::vector<float> after = Convolved(shape, values, kImages, true);
  const int64_t results = static_cast<int64_t>(after.size()) / kImages;
  for (int64_t i = 0; i < kImages * results; ++i) {
    if (spoiled(i / results)) continue;
    ASSERT_EQ(after[i], before[i]) << "image " << i / results;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PooledConvolutionTest,
    ::testing::Values(Case{4, 40, 16, 7, {4, 4, true}},  // fa20
                      Case{6, 14, 16, 5, kHalve},        // lenet5
                      Case{8, 24, 20, 7, {4, 4, true}},
                      Case{4, 29, 5, 7, {4, 4, false}},
                      Case{6, 21, 17, 5, {2, 2, true}},
                      Case{10, 17, 33, 5, kHalve}),
    [](const auto& one) {
      const Case& c = one.param;
      return absl::StrCat(c.channels, "_", c.size, "_", c.filters, "_",
                          c.kernel_size, "_", c.pool.size);
    });

}  // namespace
}  // namespace convlab
