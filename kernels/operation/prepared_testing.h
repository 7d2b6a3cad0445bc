// The definition of an operation in float64, and what the tests of prepared
// operations share.
#ifndef KERNELS_OPERATION_PREPARED_TESTING_H_
#define KERNELS_OPERATION_PREPARED_TESTING_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
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

// Small operations of all kinds; calls function(operation) for each that is
// valid.
template <typename Function>
void ForOperations(const Function& function) {
  constexpr int64_t kImages[][4] = {// batch, channels, height, width
                                    {1, 1, 9, 11},
                                    {3, 3, 16, 16},
                                    {2, 5, 7, 37},
                                    {1, 2, 6, 83}};
  constexpr int64_t kFilters[][3] = {// number, height, width
                                     {1, 1, 1},
                                     {7, 3, 3},
                                     {13, 5, 2},
                                     {33, 1, 4},
                                     {70, 7, 7}};
  constexpr int64_t kStrides[][2] = {{1, 1}, {2, 2}, {1, 3}, {4, 4}};
  constexpr int64_t kPadding[][4] = {{0, 0, 0, 0}, {1, 1, 1, 1}, {3, 0, 2, 5}};
  constexpr MaxPool kPools[] = {
      {}, {2, 2, false}, {}, {3, 2, true}, {2, 1, false}};
  int count = 0;
  for (const auto& image : kImages) {
    for (const auto& filter : kFilters) {
      for (const auto& stride : kStrides) {
        for (const auto& padding : kPadding) {
          Operation o = MakeOperation(image[0], image[1], image[2], image[3],
                                      filter[0], filter[1], filter[2]);
          o.stride_y = stride[0], o.stride_x = stride[1];
          o.top = padding[0], o.bottom = padding[1];
          o.left = padding[2], o.right = padding[3];
          // Each combination meets others.
          o.pool = kPools[count % 5];
          o.bias = count % 3 == 0;
          o.activation = count % 2 == 0 ? Activation::kNone : Activation::kRelu;
          ++count;
          if (!CheckOperation(o).ok()) o.pool = {};
          if (CheckOperation(o).ok()) function(o);
        }
      }
    }
  }
}

// What a kernel needs: a GPU of these compute capabilities (90 for 9.0), and
// among operations of stride 1 with square filters such as this accepts. Only
// the tests' operations are meant, and blocks with 160 KB of shared memory:
// larger ones may not fit, nor some by tensor_strips into less (8.6, 8.9).
struct KernelLimits {
  const char* kernel;
  int least_capability, most_capability;
  bool (*accepts)(int64_t kernel_size, int64_t channels);
};
// Of every variant that tests of operations ask for by name.
const KernelLimits& LimitsOfKernel(absl::string_view kernel);
// Whether the kernel takes the operation on a GPU that it runs on; the general
// kernel, and the choice of the fastest, "", take every one.
bool KernelTakes(absl::string_view kernel, const Operation& o);

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

  // KernelTakes, which must be what PrepareOperation says.
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
