// Convolutions with their pooling as networks need them: checked against the
// definition for each image by itself, and for the same bits in any batch.
#ifndef KERNELS_COMPILED_POOLED_TESTING_H_
#define KERNELS_COMPILED_POOLED_TESTING_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/epilogue.h"
#include "kernels/convolution/problem.h"

namespace convlab {

struct PooledCase {
  int channels, size, filters, kernel_size;
  MaxPool pool;
};
std::string NameOf(const ::testing::TestParamInfo<PooledCase>& info);

// A case with an activation.
struct Pooled {
  PooledCase of;
  Activation activation;

  Problem At(int64_t images) const {
    return {images, of.channels, of.size, of.size, of.filters, of.kernel_size};
  }
  int convolved() const { return of.size - of.kernel_size + 1; }
  int pooled() const { return static_cast<int>(of.pool.Output(convolved())); }
  int64_t image_floats() const { return At(1).channels * of.size * of.size; }
  int weights() const {  // of a filter
    return of.channels * of.kernel_size * of.kernel_size;
  }
};

struct PooledValues {
  std::vector<float> in, filters, bias;
};

// What is checked: the results of the first `images` images, with the bias or
// without.
using ConvolvePooled = std::function<std::vector<float>(
    const Pooled& shape, const PooledValues& values, int64_t images,
    bool bias)>;

// With each activation, on data of several kinds.
void ExpectWhatTheDefinitionGives(const PooledCase& of,
                                  const ConvolvePooled& convolved);
// Whatever the number of images, and so which of them a block has.
void ExpectTheSameBitsInAnyBatch(const PooledCase& of,
                                 const ConvolvePooled& convolved);
// Images that lose bits, or cannot be scaled, beside others of their block.
void ExpectBitsOfTheImageAlone(const PooledCase& of,
                               const ConvolvePooled& convolved);

}  // namespace convlab

#endif  // KERNELS_COMPILED_POOLED_TESTING_H_
