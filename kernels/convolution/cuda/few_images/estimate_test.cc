#include "kernels/convolution/cuda/few_images/estimate.h"

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"

namespace convlab::cuda {
namespace {

TEST(FewImagesEstimate, GrowsWithTheBatch) {
  CheckEstimateOfCourseLayers(EstimateFewImagesNs);
}

TEST(FewImagesEstimate, IsNegativeForWhatHasNoPlan) {
  EXPECT_LT(EstimateFewImagesNs({1, 1, 200, 200, 4, 180}, kH200), 0);
}

// A size that no kernel was compiled for, against one that has its own.
TEST(FewImagesEstimate, UnrolledFiltersAreFaster) {
  EXPECT_GT(EstimateFewImagesNs({100, 8, 40, 40, 16, 6}, kH200),
            EstimateFewImagesNs({100, 8, 40, 40, 16, 5}, kH200));
}

}  // namespace
}  // namespace convlab::cuda
