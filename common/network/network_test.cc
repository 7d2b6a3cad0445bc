#include "common/network/network.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

// The course's own table, column by column, and what follows from it: sizes
// after each convolution and each pooling, the length of the flattened vector.
struct ExpectedStage {
  int channels, filters, kernel_size;
  int64_t output;
  Activation activation;
  int pool_size, pool_stride;
  bool pool_ceil;
  int64_t pooled;
};

struct Expected {
  const char* name;
  int image_size;
  std::vector<ExpectedStage> stages;
  int64_t flattened;
  int hidden;
  Activation hidden_activation;
  bool announces_first;
};

TEST(Network, TheTableIsTheCourses) {
  constexpr Activation kNone = Activation::kNone;
  constexpr Activation kTanh = Activation::kTanh;
  constexpr Activation kRelu = Activation::kRelu;
  const Expected table[] = {
      {"fa17-high",
       28,
       {{1, 50, 5, 24, kTanh, 2, 2, false, 12}},
       7200,
       500,
       kTanh,
       true},
      {"fa17-low",
       28,
       {{1, 50, 5, 24, kTanh, 2, 2, false, 12}},
       7200,
       500,
       kTanh,
       true},
      {"fa18",
       72,
       {{1, 12, 7, 66, kTanh, 2, 2, false, 33},
        {12, 24, 7, 27, kNone, 0, 0, false, 27}},
       17496,
       160,
       kTanh,
       false},
      {"sp19",
       48,
       {{1, 6, 5, 44, kTanh, 2, 2, false, 22},
        {6, 16, 5, 18, kNone, 0, 0, false, 18}},
       5184,
       140,
       kTanh,
       false},
      {"sp19-baseline",
       48,
       {{1, 12, 7, 42, kTanh, 2, 2, false, 21},
        {12, 24, 7, 15, kNone, 0, 0, false, 15}},
       5400,
       160,
       kTanh,
       false},
      {"fa19",
       70,
       {{1, 12, 5, 66, kTanh, 2, 2, false, 33},
        {12, 24, 5, 29, kNone, 0, 0, false, 29}},
       20184,
       160,
       kTanh,
       false},
      {"fa20",
       86,
       {{1, 4, 7, 80, kRelu, 2, 2, false, 40},
        {4, 16, 7, 34, kRelu, 4, 4, true, 9}},
       1296,
       32,
       kRelu,
       false},
  };
  ASSERT_EQ(Networks().size(), std::size(table));
  for (size_t row = 0; row < std::size(table); ++row) {
    const Expected& expected = table[row];
    SCOPED_TRACE(expected.name);
    const Network& network = Networks()[row];
    EXPECT_EQ(network.name, expected.name);
    EXPECT_EQ(*FindNetwork(expected.name), &network);
    EXPECT_EQ(network.image_size, expected.image_size);
    const std::vector<StageShape> shapes = network.StageShapes();
    ASSERT_EQ(network.stages.size(), expected.stages.size());
    ASSERT_EQ(shapes.size(), expected.stages.size());
    for (size_t i = 0; i < shapes.size(); ++i) {
      SCOPED_TRACE(i);
      const ConvolutionStage& stage = network.stages[i];
      const ExpectedStage& wanted = expected.stages[i];
      EXPECT_EQ(stage.input_channels, wanted.channels);
      EXPECT_EQ(stage.output_channels, wanted.filters);
      EXPECT_EQ(stage.kernel_size, wanted.kernel_size);
      EXPECT_EQ(shapes[i].output_size, wanted.output);
      EXPECT_EQ(stage.activation, wanted.activation);
      EXPECT_EQ(stage.pool.size, wanted.pool_size);
      EXPECT_EQ(stage.pool.stride, wanted.pool_stride);
      EXPECT_EQ(stage.pool.ceil, wanted.pool_ceil);
      EXPECT_EQ(shapes[i].pooled_size, wanted.pooled);
    }
    EXPECT_EQ(network.Flattened(), expected.flattened);
    EXPECT_EQ(network.hidden, expected.hidden);
    EXPECT_EQ(network.hidden_activation, expected.hidden_activation);
    EXPECT_EQ(network.announces_first, expected.announces_first);
  }
}

TEST(Network, StagesFitTogether) {
  for (const Network& network : Networks()) {
    int channels = 1;
    for (const ConvolutionStage& stage : network.stages) {
      EXPECT_EQ(stage.input_channels, channels) << network.name;
      channels = stage.output_channels;
    }
  }
}

TEST(Network, AliasesAreTheCoursesNames) {
  EXPECT_EQ((*FindNetwork("ece408-high"))->name, "fa17-high");
  EXPECT_EQ((*FindNetwork("ece408-low"))->name, "fa17-low");
  EXPECT_EQ((*FindNetwork("ece408"))->name, "fa19");
}

TEST(Network, UnknownNameListsTheNames) {
  const absl::Status status = FindNetwork("fa21").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'fa21'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("sp19-baseline"));
}

TEST(MaxPool, FloorDropsAndCeilKeepsTheLastWindow) {
  EXPECT_EQ((MaxPool{4, 4, true}.Output(34)), 9);
  EXPECT_EQ((MaxPool{4, 4, false}.Output(34)), 8);
  EXPECT_EQ((MaxPool{2, 2, false}.Output(33)), 16);
  EXPECT_EQ((MaxPool{2, 2, true}.Output(33)), 17);
  EXPECT_EQ((MaxPool{2, 2, true}.Output(32)), 16);
  EXPECT_EQ(MaxPool{}.Output(29), 29);
}

}  // namespace
}  // namespace convlab
