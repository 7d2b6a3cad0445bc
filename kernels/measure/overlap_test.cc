// Slices in streams give what the whole batch gives.
#include "kernels/measure/overlap.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "common/parallel/parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/cuda/lib/adapt.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace cuda {
extern const KernelVariant kNaive;
extern const KernelVariant kConstantWeights;
}  // namespace cuda
namespace {

using ::testing::HasSubstr;

// One that has no state beyond its tensors, and one that keeps filters in
// constant memory, which all streams share. By name, not from the table: the
// bundle would get all kernels once more.
const Variant kNaiveVariant = cuda::Adapt<cuda::kNaive>();
const Variant kConstantWeightsVariant = cuda::Adapt<cuda::kConstantWeights>();

TEST(OverlapWithoutGpu, SaysWhatIsMissing) {
  const auto device = cuda::FindDevice();
  if (device.ok()) GTEST_SKIP() << "there is a GPU: " << device->name;
  const absl::Status status =
      MeasureStreams(kNaiveVariant, {8, 1, 9, 9, 2, 3}, 4).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no NVIDIA GPU"));
}

class OverlapTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto device = cuda::FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }
};

TEST_F(OverlapTest, SlicesAreTheWholeBatch) {
  // Slices of equal size, a smaller last one, and more slices than images.
  const Problem problem{10, 3, 20, 17, 6, 5};
  std::mt19937 generator(5);
  std::uniform_int_distribution<int> integers(-8, 8);
  std::vector<float> x(problem.input_elements()), k(problem.kernel_elements());
  for (float& value : x) value = integers(generator);
  for (float& value : k) value = integers(generator);
  Workers workers(2);
  const std::vector<double> reference =
      ReferenceConvolution(problem, x.data(), k.data(), workers);
  for (const Variant* variant : {&kNaiveVariant, &kConstantWeightsVariant}) {
    for (const int64_t slices : {1, 5, 3, 10, 100}) {
      for (const int streams : {1, 2, 3}) {
        const auto sliced =
            SlicedConvolution::Create(*variant, problem, slices, streams);
        ASSERT_TRUE(sliced.ok()) << sliced.status();
        std::vector<float> y(problem.output_elements(), -1e30f);
        ASSERT_TRUE((*sliced)->Run(x.data(), k.data(), y.data()).ok());
        EXPECT_EQ(std::vector<double>(y.begin(), y.end()), reference)
            << variant->name << ", " << slices << " slices in " << streams
            << " streams";
      }
    }
  }
}

TEST_F(OverlapTest, MeasuresBothWays) {
  const auto times =
      MeasureStreams(kNaiveVariant, {1000, 1, 70, 70, 12, 5}, 10, 3);
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->serial_ns.size(), 3u);
  ASSERT_EQ(times->overlapped_ns.size(), 3u);
  // Copies one way and the other overlap with each other at least.
  EXPECT_LT(
      *std::min_element(times->overlapped_ns.begin(),
                        times->overlapped_ns.end()),
      *std::min_element(times->serial_ns.begin(), times->serial_ns.end()));
}

TEST_F(OverlapTest, NumbersAreChecked) {
  EXPECT_EQ(SlicedConvolution::Create(kNaiveVariant, {1, 1, 1, 1, 1, 1}, 0, 1)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SlicedConvolution::Create(kNaiveVariant, {1, 1, 1, 1, 1, 3}, 1, 1)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace convlab
