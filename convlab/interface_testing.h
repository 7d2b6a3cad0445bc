// What the tests of the C interface share: a problem, and its tensors of ones.
#ifndef CONVLAB_INTERFACE_TESTING_H_
#define CONVLAB_INTERFACE_TESTING_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "convlab/include/convlab/convlab.h"
#include "convlab/include/convlab/convlab.hpp"
#include "gtest/gtest.h"

namespace convlab {

// What the program has taken from the heap by C++'s means.
extern std::atomic<int64_t> allocations;

inline constexpr int kImages = 3, kChannels = 2, kSize = 12, kFilters = 5;

inline convlab_problem SomeProblem() {
  convlab_problem problem = CONVLAB_PROBLEM_INIT;
  problem.batch = kImages, problem.channels = kChannels;
  problem.height = problem.width = kSize;
  problem.filters = kFilters;
  problem.kernel_height = problem.kernel_width = 3;
  problem.padding_top = problem.padding_bottom = 1;
  problem.padding_left = problem.padding_right = 1;
  problem.has_bias = 1;
  problem.activation = CONVLAB_RELU;
  problem.pool_size = problem.pool_stride = 2;
  return problem;
}

// Ones: an output counts the pixels that its sums see, plus the bias.
inline std::vector<float> ExpectedOnes(float bias) {
  // Of a 2x2 window the largest is a pixel of the inside.
  return std::vector<float>(kImages * kFilters * 36, 9 * kChannels + bias);
}

inline Options OnDevice(int device) {
  Options options;
  options.device = device;
  return options;
}

struct HostTensors {
  std::vector<float> x =
      std::vector<float>(kImages * kChannels * kSize * kSize, 1);
  std::vector<float> weights = std::vector<float>(kFilters * kChannels * 9, 1);
  std::vector<float> bias = std::vector<float>(kFilters, 0.5f);
  std::vector<float> y = std::vector<float>(kImages * kFilters * 36, -1);
};

// Memory of the host at a multiple of 256 bytes.
class Aligned {
 public:
  explicit Aligned(int64_t bytes)
      : memory_(static_cast<char*>(
            std::aligned_alloc(256, (bytes + 255) / 256 * 256))) {}
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  ~Aligned() { std::free(memory_); }
  char* data() const { return memory_; }

 private:
  char* const memory_;
};

// The message of the InvalidArgument that the function throws.
template <typename Function>
std::string Thrown(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), CONVLAB_INVALID_ARGUMENT);
    return error.what();
  }
  return "";
}

// The message of an error, of the code that is expected.
inline std::string MessageOf(convlab_status status, convlab_status expected) {
  EXPECT_EQ(status, expected);
  return status == CONVLAB_OK ? "" : convlab_last_error();
}

}  // namespace convlab

#endif  // CONVLAB_INTERFACE_TESTING_H_
