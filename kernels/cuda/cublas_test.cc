// cuBLAS opens without a GPU; on a GPU its products are compared with plain
// sums.
#include "kernels/cuda/cublas.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/library.h"

namespace convlab::cuda {
namespace {

using ::testing::EndsWith;

TEST(CublasWithoutGpu, OpensAndSaysItsVersion) {
  if (const char* reason = WhyNoCublas()) GTEST_SKIP() << reason;
  const Library* cublas = nullptr;
  for (const Library* library : OpenedLibraries()) {
    if (library->name == "cuBLAS") cublas = library;
  }
  ASSERT_NE(cublas, nullptr);
  EXPECT_GE(cublas->version[0], 11);
  EXPECT_THAT(cublas->path, ::testing::HasSubstr("/libcublas.so."));
}

class CublasTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto device = FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    if (const char* reason = WhyNoCublas()) GTEST_SKIP() << reason;
    const Error error = cublas_.Create();
    ASSERT_FALSE(error.failed()) << ToStatus(error);
  }

  std::vector<float> Random(int64_t count) {
    std::uniform_int_distribution<int> integers(-8, 8);
    std::vector<float> values(count);
    for (float& value : values) value = integers(generator_);
    return values;
  }

  // Returns C of `product`, whose batches of A, B and C are packed.
  void ExpectRight(MatrixProduct product) {
    const int64_t rows = product.rows, columns = product.columns;
    const int64_t depth = product.depth;
    const int64_t pitch = product.c_pitch > 0 ? product.c_pitch : columns;
    product.b_stride = depth * columns;
    product.c_stride = rows * pitch;
    const std::vector<float> a = Random(rows * depth);
    const std::vector<float> b = Random(product.count * product.b_stride);
    std::vector<float> c = Random(product.count * product.c_stride);
    std::vector<float> expected = c;
    for (int64_t i = 0; i < product.count; ++i) {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < columns; ++column) {
          float& sum = expected[i * product.c_stride + row * pitch + column];
          sum *= product.beta;
          for (int64_t d = 0; d < depth; ++d) {
            sum += a[row * depth + d] *
                   b[i * product.b_stride + (product.b_transposed
                                                 ? column * depth + d
                                                 : d * columns + column)];
          }
        }
      }
    }
    DeviceBuffer device_a = Upload(a), device_b = Upload(b),
                 device_c = Upload(c);
    const Error error = cublas_.Multiply(product, device_a.floats(),
                                         device_b.floats(), device_c.floats(),
                                         /*stream=*/nullptr);
    ASSERT_FALSE(error.failed()) << ToStatus(error);
    ASSERT_TRUE(CopyToHost(c.data(), device_c.data(), c.size() * 4).ok());
    EXPECT_EQ(c, expected);
  }

  static DeviceBuffer Upload(const std::vector<float>& values) {
    DeviceBuffer buffer = *DeviceBuffer::Allocate(values.size() * 4);
    EXPECT_TRUE(
        CopyToDevice(buffer.data(), values.data(), values.size() * 4).ok());
    return buffer;
  }

  Cublas cublas_;
  std::mt19937 generator_{3};
};

TEST_F(CublasTest, MatricesAreRowMajor) {
  ExpectRight({5, 7, 3});
  ExpectRight({33, 1, 130});
}

TEST_F(CublasTest, BMayBeTransposedAndCAddedTo) {
  MatrixProduct product{5, 7, 3};
  product.b_transposed = true;
  product.beta = 2;
  ExpectRight(product);
}

TEST_F(CublasTest, ManyProductsWithOneA) {
  MatrixProduct product{4, 6, 10};
  product.count = 9;
  ExpectRight(product);
}

TEST_F(CublasTest, RowsOfCMayBeFurtherApart) {
  MatrixProduct product{4, 6, 10};
  product.c_pitch = 11;
  ExpectRight(product);
}

TEST_F(CublasTest, TooLargeIsRefused) {
  const Error error =
      cublas_.Multiply({1, int64_t{1} << 31, 1}, nullptr, nullptr, nullptr,
                       /*stream=*/nullptr);
  EXPECT_EQ(ToStatus(error).code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(ToStatus(error).message()), EndsWith("2^31 - 1"));
}

}  // namespace
}  // namespace convlab::cuda
