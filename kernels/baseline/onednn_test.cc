// Compares oneDNN, where it is installed, with float64.
#include "kernels/baseline/onednn.h"

#include <chrono>
#include <ctime>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

TEST(OneDnn, SaysWhatIsMissing) {
  const auto version = OpenOneDnn();
  if (version.ok()) GTEST_SKIP() << "nothing is missing";
  EXPECT_EQ(version.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(version.status().message()), HasSubstr("oneDNN"));
  const float value = 0;
  EXPECT_EQ(OneDnnConvolution::Create({1, 1, 1, 1, 1, 1}, OneDnnLayout::kNchw,
                                      1, &value, &value)
                .status(),
            version.status());
}

class OneDnnTest : public ::testing::TestWithParam<OneDnnLayout> {
 protected:
  void SetUp() override {
    const auto version = OpenOneDnn();
    if (!version.ok()) GTEST_SKIP() << version.status().message();
    EXPECT_THAT(*version, ::testing::StartsWith("2."));
  }
};

// Spinning threads would take a core from whatever runs next.
TEST_P(OneDnnTest, ThreadsSleepWhenTheirWorkIsDone) {
  const Problem problem = {16, 3, 40, 40, 16, 5};
  const std::vector<float> x(problem.input_elements(), 1);
  const std::vector<float> k(problem.kernel_elements(), 1);
  const auto convolution =
      OneDnnConvolution::Create(problem, GetParam(), 2, x.data(), k.data());
  ASSERT_TRUE(convolution.ok()) << convolution.status();
  ASSERT_TRUE((*convolution)->Run().ok());
  const std::clock_t used = std::clock();  // by all threads
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(1.0 * (std::clock() - used) / CLOCKS_PER_SEC, 0.001);
}

TEST_P(OneDnnTest, IsRightInItsClass) {
  std::mt19937 generator(5);
  std::uniform_real_distribution<float> distribution(-1, 1);
  Workers workers(2);
  for (const Problem& problem :
       {Problem{3, 1, 20, 20, 6, 5}, Problem{5, 12, 13, 17, 24, 7},
        Problem{2, 3, 9, 8, 50, 3}, Problem{1, 1, 1, 1, 1, 1}}) {
    SCOPED_TRACE(ToString(problem));
    std::vector<float> x(problem.input_elements());
    std::vector<float> k(problem.kernel_elements());
    for (float& value : x) value = distribution(generator);
    for (float& value : k) value = distribution(generator);
    for (const int threads : {1, 2}) {
      const auto convolution = OneDnnConvolution::Create(
          problem, GetParam(), threads, x.data(), k.data());
      ASSERT_TRUE(convolution.ok()) << convolution.status();
      EXPECT_NE((*convolution)->implementation(), "");
      std::vector<float> y(problem.output_elements());
      const auto error = [&] {
        EXPECT_TRUE((*convolution)->Read(y.data()).ok());
        return RelativeError(y.data(), ReferenceConvolution(problem, x.data(),
                                                            k.data(), workers));
      };
      (*convolution)->Poison();
      EXPECT_FALSE(error() <= 1);
      ASSERT_TRUE((*convolution)->Run().ok());
      EXPECT_LE(error(), MaxRelativeError(AccuracyClass::kFp32));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, OneDnnTest,
                         ::testing::Values(OneDnnLayout::kNchw,
                                           OneDnnLayout::kPreferred));

}  // namespace
}  // namespace convlab
