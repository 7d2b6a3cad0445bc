#include "kernels/convolution/cuda/few_images/estimate.h"

#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"

namespace convlab::cuda {
namespace {

TEST(FewImagesEstimate, EstimatesGrowWithTheBatch) {
  for (const DeviceLimits& device : kDevices) {
    for (const Layer& layer : CourseLayers()) {
      SCOPED_TRACE(layer.name);
      double before = 0;
      for (const int64_t batch : {1, 10, 100, 1000, 10000}) {
        const double ns = EstimateFewImagesNs(layer.At(batch), device);
        EXPECT_GT(ns, 0);
        EXPECT_TRUE(std::isfinite(ns));
        EXPECT_GE(ns, before);
        before = ns;
      }
      EXPECT_GT(before, 1e5);
    }
  }
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
