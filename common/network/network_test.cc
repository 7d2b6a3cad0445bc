#include "common/network/network.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

// The course's own numbers: sizes after each convolution and each pooling, the
// length of the flattened vector and of the hidden layer.
struct Expected {
  const char* name;
  std::vector<int64_t> outputs;
  std::vector<int64_t> pooled;
  int64_t flattened;
  int hidden;
};

TEST(Network, ShapesAreTheCourses) {
  const Expected table[] = {
      {"fa17-high", {24}, {12}, 7200, 500},
      {"fa17-low", {24}, {12}, 7200, 500},
      {"fa18", {66, 27}, {33, 27}, 17496, 160},
      {"sp19", {44, 18}, {22, 18}, 5184, 140},
      {"sp19-baseline", {42, 15}, {21, 15}, 5400, 160},
      {"fa19", {66, 29}, {33, 29}, 20184, 160},
      {"fa20", {80, 34}, {40, 9}, 1296, 32},
  };
  ASSERT_EQ(Networks().size(), std::size(table));
  for (const Expected& expected : table) {
    SCOPED_TRACE(expected.name);
    const auto network = FindNetwork(expected.name);
    ASSERT_TRUE(network.ok());
    const std::vector<StageShape> shapes = (*network)->StageShapes();
    ASSERT_EQ(shapes.size(), expected.outputs.size());
    for (size_t i = 0; i < shapes.size(); ++i) {
      EXPECT_EQ(shapes[i].output_size, expected.outputs[i]);
      EXPECT_EQ(shapes[i].pooled_size, expected.pooled[i]);
    }
    EXPECT_EQ((*network)->Flattened(), expected.flattened);
    EXPECT_EQ((*network)->hidden, expected.hidden);
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
