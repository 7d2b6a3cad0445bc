#include "tools/sweep/layer.h"

#include "common/status/status.h"
#include "gtest/gtest.h"
#include "kernels/convolution/variants.h"

namespace convlab {
namespace {

std::string Sizes(const absl::StatusOr<Problem>& problem) {
  return problem.ok() ? ToString(*problem)
                      : std::string(problem.status().message());
}

TEST(ParseLayer, TakesNamesAndSizes) {
  EXPECT_EQ(Sizes(ParseLayer("fa19-L2", 100)), "B=100 C=12 H=33 W=33 M=24 K=5");
  EXPECT_EQ(Sizes(ParseLayer("fa20-L1", 1)), "B=1 C=1 H=86 W=86 M=4 K=7");
  EXPECT_EQ(Sizes(ParseLayer("fa17-high", 2)), "B=2 C=1 H=28 W=28 M=50 K=5");
  EXPECT_EQ(Sizes(ParseLayer("1,2,9,8,4,3", 7)), "B=1 C=2 H=9 W=8 M=4 K=3");
}

TEST(ParseLayer, SaysWhatIsWrong) {
  const auto message = [](const char* text) {
    const auto problem = ParseLayer(text, 1);
    return std::string(problem.status().message());
  };
  EXPECT_NE(message("fa19").find("unknown layer 'fa19'"), std::string::npos);
  EXPECT_NE(message("fa19-L3").find("fa19-L2"), std::string::npos);
  EXPECT_NE(message("1,2,3").find("six whole numbers"), std::string::npos);
  EXPECT_NE(message("1,2,3,x,5,1").find("six whole numbers"),
            std::string::npos);
  EXPECT_NE(message("1,1,3,3,1,5").find("kernel"), std::string::npos);
}

TEST(Quantile, Interpolates) {
  EXPECT_EQ(Quantile({7}, 0.5), 7);
  EXPECT_EQ(Quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_EQ(Quantile({5, 1, 2, 3, 4}, 0.25), 2);
  EXPECT_EQ(Quantile({5, 1, 2, 3, 4}, 1), 5);
}

class NoConvolution : public Convolution {
  absl::Status Run(const float*, const float*, float*) override {
    return absl::OkStatus();
  }
};

TEST(Layer, VerifiesAndTimes) {
  const auto device = cuda::FindDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  const Problem problem = {9, 2, 20, 20, 3, 5};
  auto layer = Layer::Create(problem);
  ASSERT_TRUE(layer.ok()) << layer.status();
  const auto naive = FindVariant(Backend::kCuda, "naive");
  ASSERT_TRUE(naive.ok()) << naive.status();
  const auto convolution = (*naive)->Create(problem, Resources());
  ASSERT_TRUE(convolution.ok()) << convolution.status();
  const auto error = layer->Verify(**convolution);
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_LE(*error, 1e-6);
  const auto times = layer->Time(**convolution, 3);
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->size(), 3u);
  EXPECT_GT(times->front(), 0);

  // What writes nothing does not pass, though the right result stood there.
  NoConvolution nothing;
  const auto poisoned = layer->Verify(nothing);
  ASSERT_TRUE(poisoned.ok()) << poisoned.status();
  EXPECT_FALSE(*poisoned <= 1);
}

}  // namespace
}  // namespace convlab
