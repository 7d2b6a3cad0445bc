// tensor_wgmma with pooling, which GpuStages takes for many images.
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/compiled/pooled_testing.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

using cuda::DeviceBuffer;

constexpr MaxPool kHalve{2, 2, false};

// The variant that GpuStages takes, whatever the number of images.
const Variant& Pooling() {
  return **FindVariant(Backend::kCuda, "tensor_wgmma");
}

// Convolves the first `images` images, with filters that are prepared.
std::vector<float> Convolved(const Pooled& shape, const PooledValues& values,
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

class PooledConvolutionTest : public ::testing::TestWithParam<PooledCase> {
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
  ExpectWhatTheDefinitionGives(GetParam(), Convolved);
}
TEST_P(PooledConvolutionTest, BitsAreTheSameInAnyBatch) {
  ExpectTheSameBitsInAnyBatch(GetParam(), Convolved);
}
TEST_P(PooledConvolutionTest, AnImagesBitsDoNotDependOnItsNeighbours) {
  ExpectBitsOfTheImageAlone(GetParam(), Convolved);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PooledConvolutionTest,
    ::testing::Values(PooledCase{4, 40, 16, 7, {4, 4, true}},  // fa20
                      PooledCase{6, 14, 16, 5, kHalve},        // lenet5
                      PooledCase{8, 24, 20, 7, {4, 4, true}},
                      PooledCase{4, 29, 5, 7, {4, 4, false}},
                      PooledCase{6, 21, 17, 5, {2, 2, true}},
                      PooledCase{10, 17, 33, 5, kHalve}),
    NameOf);

}  // namespace
}  // namespace convlab
