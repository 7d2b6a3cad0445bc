// What the tests of the kernels' plans share: the course's layers, and
// descriptions of problems and plans.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_PLAN_TESTING_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_PLAN_TESTING_H_

#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/known_devices.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {

// That Divide divides every n below `most` by d.
inline void CheckDivision(int most, int d, uint32_t magic) {
  for (const int n : {0, 1, d - 1, d, most / 2, most - d, most - 1}) {
    if (n < 0 || n >= most) continue;
    EXPECT_EQ(Divide(n, magic), n / d) << n << " / " << d;
  }
}

// Values, each with a space after it.
inline std::string Text(const std::vector<int64_t>& values) {
  std::string text;
  for (const int64_t value : values) text += std::to_string(value) + " ";
  return text;
}
inline std::string DescribeProblem(const Problem& p) {
  return "B C H W M K: " + Text({p.batch, p.channels, p.height, p.width,
                                 p.filters, p.kernel_size});
}

struct Layer {
  const char* name;
  int64_t channels, size, filters, kernel_size;

  Problem At(int64_t batch) const {
    return {batch, channels, size, size, filters, kernel_size};
  }
};
inline constexpr Layer kFirstLayers[] = {
    {"fa17", 1, 28, 50, 5},   {"fa18-L1", 1, 72, 12, 7},
    {"sp19-L1", 1, 48, 6, 5}, {"fa19-L1", 1, 70, 12, 5},
    {"fa20-L1", 1, 86, 4, 7},
};
inline constexpr Layer kSecondLayers[] = {
    {"fa18-L2", 12, 33, 24, 7},
    {"sp19-L2", 6, 22, 16, 5},
    {"fa19-L2", 12, 33, 24, 5},
    {"fa20-L2", 4, 40, 16, 7},
};
inline std::vector<Layer> CourseLayers() {
  std::vector<Layer> layers(std::begin(kFirstLayers), std::end(kFirstLayers));
  layers.insert(layers.end(), std::begin(kSecondLayers),
                std::end(kSecondLayers));
  return layers;
}

// That an estimate for KernelVariant::estimate_ns is positive and finite for
// the course's layers on all devices, and does not shrink as the batch grows.
inline void CheckEstimateOfCourseLayers(
    double (*estimate_ns)(const Problem&, const DeviceLimits&)) {
  for (const DeviceLimits& device : kDevices) {
    for (const Layer& layer : CourseLayers()) {
      double before = 0;
      for (const int64_t batch : {1, 10, 100, 1000, 10000}) {
        const double ns = estimate_ns(layer.At(batch), device);
        EXPECT_GT(ns, 0) << layer.name << " batch " << batch;
        EXPECT_TRUE(std::isfinite(ns)) << layer.name << " batch " << batch;
        EXPECT_GE(ns, before) << layer.name << " batch " << batch;
        before = ns;
      }
      // 10,000 images take a tenth of a millisecond anywhere.
      EXPECT_GT(before, 1e5) << layer.name;
    }
  }
}

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_PLAN_TESTING_H_
