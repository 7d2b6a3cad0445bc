// Helpers of the tests that compare variants with the reference.
#ifndef KERNELS_CONVOLUTION_CHECKING_PARITY_TESTING_H_
#define KERNELS_CONVOLUTION_CHECKING_PARITY_TESTING_H_

#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "common/parallel/parallel.h"
#include "gtest/gtest.h"
#include "kernels/convolution/convolution.h"
#include "kernels/cuda/device.h"
#include "kernels/simd/cpu_target.h"

namespace convlab {

// More workers than cores, so that a race has a chance to show.
Workers& TestWorkers();
Resources TestResources();

// A problem's input tensors and the output that is expected of them.
struct Tensors {
  std::vector<float> x, k;
  std::vector<double> y;
};

// Tensors of integers up to `largest`, weights up to half of it, or of floats
// from [-1, 1) where `largest` is 0. They are kept until another problem is
// asked for.
const Tensors& TensorsOf(const Problem& problem, int largest);

// The same in the memory of the current device, with the output poisoned with
// NaN. Each tensor is preceded by `offset` floats.
struct DeviceTensors {
  cuda::DeviceBuffer x, k, y;
};
absl::StatusOr<DeviceTensors> Upload(const Tensors& tensors,
                                     int64_t offset = 0);

// The bound of a variant's error relative to the L2 norm of the output: that of
// its class, which holds for sums like the course's; rounding errors of a
// longer float32 sum grow with the square root of its length.
double MaxError(const Variant& variant, const Problem& problem);

// Skips the test that calls it unless the variant runs here and takes the
// problem: return from the test if IsSkipped() afterwards.
void SkipUnlessSupported(const Variant& variant, const Problem& problem);

// A variant, a problem and the instruction set to run it with.
using VariantCase = std::tuple<const Variant*, Problem, CpuTarget>;

// All problems of parity_problems.h for all variants that are wanted, with each
// instruction set if a variant has code for several. The variants of one
// problem are adjacent, so that its tensors are made once.
std::vector<VariantCase> VariantCases(bool (*wanted)(const Variant& variant));
std::string VariantCaseName(const ::testing::TestParamInfo<VariantCase>& info);

// Skips the cases that are not supported.
class VariantTest : public ::testing::TestWithParam<VariantCase> {
 protected:
  void SetUp() override;
  void TearDown() override;
};

// Says where y, an output of RunOnHostTensors, is wrong (mismatch.h); for
// EXPECT_LE(error, max_error) << Mismatches(...). With `max_error` 0 every
// output must be equal; otherwise those are wrong that lie further off than
// rounding errors would take them.
std::string Mismatches(const Problem& problem, const Tensors& tensors,
                       const std::vector<float>& y, double max_error);

// How GoogleTest names the parameters of a test that fails; without these it
// dumps their bytes.
void PrintTo(const Problem& problem, std::ostream* out);
void PrintTo(const Variant* variant, std::ostream* out);
void PrintTo(CpuTarget target, std::ostream* out);

// The GPU's variants; none in a build without CUDA.
std::vector<const Variant*> CudaVariants();

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_PARITY_TESTING_H_
