// The definition of an operation in float64, and what the tests of prepared
// operations share.
#ifndef KERNELS_OPERATION_PREPARED_TESTING_H_
#define KERNELS_OPERATION_PREPARED_TESTING_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "common/accuracy/contract.h"
#include "common/parallel/parallel.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/operation/prepared.h"

namespace convlab {

Workers& TestWorkers();

Operation MakeOperation(int64_t batch, int64_t channels, int64_t height,
                        int64_t width, int64_t filters, int64_t kernel_height,
                        int64_t kernel_width);

struct Sums {
  std::vector<OutputReference> reference;
  std::vector<float> plain;  // by the plain loop in float32
};

// The definition. Padding is zeros that are multiplied, too.
Sums DefinitionOf(const Operation& o, const std::vector<float>& x,
                  const std::vector<float>& k);

// y in float64.
std::vector<double> Finished(const Operation& o, const Sums& sums,
                             const float* bias);

std::vector<float> Integers(int64_t count, int most, int seed);
std::vector<float> Uniform(int64_t count, int seed);

// The backend, and the kernel that is asked for.
class Prepared
    : public ::testing::TestWithParam<std::tuple<Backend, const char*>> {
 protected:
  void SetUp() override;

  // Whether a variant that is asked for by name takes the operation; all else
  // takes every operation.
  bool Takes(const Operation& o);

  // y. On a GPU no tensor but x of an even `offset` is aligned.
  std::vector<float> Run(const Operation& o, const std::vector<float>& x,
                         const std::vector<float>& k,
                         const std::vector<float>& bias, int offset = 0);

  Target target_;
};

std::string NameOfTarget(
    const ::testing::TestParamInfo<std::tuple<Backend, const char*>>& test);

}  // namespace convlab

#endif  // KERNELS_OPERATION_PREPARED_TESTING_H_
