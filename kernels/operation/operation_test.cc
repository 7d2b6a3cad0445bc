#include "kernels/operation/operation.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

Operation Stem() {
  Operation o;
  o.batch = 8, o.channels = 3, o.height = o.width = 224;
  o.filters = 64, o.kernel_height = o.kernel_width = 7;
  o.stride_y = o.stride_x = 2;
  o.top = o.bottom = o.left = o.right = 3;
  return o;
}

TEST(Operation, SizesOfTheOutput) {
  Operation o = Stem();
  EXPECT_EQ(o.sums_height(), 112);
  EXPECT_EQ(o.output_width(), 112);
  o.pool = {3, 2, true};
  EXPECT_EQ(o.output_height(), 56);
  EXPECT_EQ(o.output_elements(), int64_t{8} * 64 * 56 * 56);
  EXPECT_TRUE(CheckOperation(o).ok()) << CheckOperation(o);
}

TEST(Operation, IsAProblemWithSquareFiltersAndStrideOne) {
  Operation o = Stem();
  EXPECT_FALSE(IsProblem(o));
  o.stride_x = o.stride_y = 1;
  EXPECT_TRUE(IsProblem(o));
  const Problem problem = PaddedProblem(o);
  EXPECT_EQ(problem.height, 230);
  EXPECT_EQ(problem.output_elements(), o.sums_elements());
  o.kernel_width = 5;
  EXPECT_FALSE(IsProblem(o));
}

TEST(Operation, WithoutPaddingTakesTheSameInput) {
  Operation o = Stem();
  o.bottom = 1, o.left = 2, o.right = 0;
  const Operation bare = WithoutPadding(o);
  EXPECT_FALSE(bare.padded());
  EXPECT_EQ(bare.padded_elements(), o.input_elements());
  EXPECT_EQ(bare.stride_x, o.stride_x);
  EXPECT_EQ(bare.kernel_elements(), o.kernel_elements());
}

TEST(Operation, IsNamedInFull) {
  Operation o = Stem();
  o.bias = true, o.activation = Activation::kRelu;
  EXPECT_EQ(ToString(o),
            "B=8 C=3 224x224 M=64 7x7 stride 2x2 padding 3,3,3,3 with bias and "
            "ReLU");
}

TEST(Operation, RefusesWhatIsNone) {
  const int64_t huge = int64_t{1} << 31;
  const std::pair<void (*)(Operation&), const char*> wrong[] = {
      {[](Operation& o) { o.batch = 0; }, "the batch is 0, expected 1 to"},
      {[](Operation& o) { o.channels = -1; }, "channels is -1"},
      {[](Operation& o) { o.stride_x = 5; },
       "the horizontal stride is 5, expected 1 to 4"},
      {[](Operation& o) { o.top = -1; }, "the padding at the top is -1"},
      {[](Operation& o) { o.kernel_height = 231; },
       "filters are larger than the padded image of 230x230"},
      {[](Operation& o) { o.right = 2147483647; }, "the padded image is"},
      {[](Operation& o) {
         o.pool = {113, 1, false};
       },
       "windows of the pooling"},
      {[](Operation& o) {
         o.pool = {2, 0, false};
       },
       "the pooling's stride is 0, expected 1 or more"},
      {[](Operation& o) {
         o.pool = {1, 112, true};
       },
       "windows of the pooling"},
      {[](Operation& o) { o.batch = o.filters = 2147483647; },
       "too large to be counted"},
      {[](Operation& o) { o.height = std::numeric_limits<int64_t>::max(); },
       "the height is"},
  };
  for (const auto& [spoil, message] : wrong) {
    Operation o = Stem();
    spoil(o);
    const absl::Status status = CheckOperation(o);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  Operation o = Stem();
  o.width = huge;
  EXPECT_FALSE(CheckOperation(o).ok());
}

}  // namespace
}  // namespace convlab
