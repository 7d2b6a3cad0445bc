#include "common/weights/mini_dnn.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/network/network.h"
#include "common/weights/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Network& Fa20() { return **FindNetwork("fa20"); }

void ExpectError(absl::string_view content, const std::string& message) {
  const absl::Status status = ParseMiniDnn(content, Fa20()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(MiniDnn, TensorsAsInOurOwnFiles) {
  std::vector<std::vector<float>> layers = Fa20Layers();
  ASSERT_EQ(layers.size(), 10);
  // Input 5 of output 2, in a matrix stored column by column.
  layers[6][5 + 2 * 1296] = -1;
  const auto file = ParseMiniDnn(MiniDnnFile(layers), Fa20());
  ASSERT_TRUE(file.ok()) << file.status();
  const struct {
    const char* name;
    std::vector<int64_t> shape;
    int layer;
    int64_t begin;
  } expected[] = {{"conv1.weight", {4, 1, 7, 7}, 0, 0},
                  {"conv2.weight", {16, 4, 7, 7}, 3, 0},
                  {"fc1.weight", {32, 1296}, 6, 0},
                  {"fc1.bias", {32}, 6, 41472},
                  {"fc2.weight", {10, 32}, 8, 0},
                  {"fc2.bias", {10}, 8, 320}};
  ASSERT_EQ(file->tensors.size(), std::size(expected));
  for (size_t i = 0; i < file->tensors.size(); ++i) {
    const Tensor& tensor = file->tensors[i];
    EXPECT_EQ(tensor.name, expected[i].name);
    EXPECT_EQ(tensor.shape, expected[i].shape);
    ASSERT_EQ(static_cast<int64_t>(tensor.values.size()),
              *ElementCount(tensor.shape));
    EXPECT_TRUE(
        std::equal(tensor.values.begin(), tensor.values.end(),
                   layers[expected[i].layer].begin() + expected[i].begin));
  }
  EXPECT_EQ(file->tensors[2].values[2 * 1296 + 5], -1);
}

// The biases of convolutions that have one, and three fully connected layers.
TEST(MiniDnn, LeNet5) {
  const std::vector<std::vector<float>> layers = {Counting(156),
                                                  {},
                                                  {},
                                                  Counting(2416),
                                                  {},
                                                  {},
                                                  Counting(48120),
                                                  {},
                                                  Counting(10164),
                                                  {},
                                                  Counting(850),
                                                  {}};
  const auto file = ParseMiniDnn(MiniDnnFile(layers), **FindNetwork("lenet5"));
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<std::string> names;
  for (const Tensor& tensor : file->tensors) {
    names.push_back(tensor.name + ShapeString(tensor.shape));
  }
  EXPECT_THAT(names, ElementsAre("conv1.weight[6,1,5,5]", "conv1.bias[6]",
                                 "conv2.weight[16,6,5,5]", "conv2.bias[16]",
                                 "fc1.weight[120,400]", "fc1.bias[120]",
                                 "fc2.weight[84,120]", "fc2.bias[84]",
                                 "fc3.weight[10,84]", "fc3.bias[10]"));
  EXPECT_EQ(file->tensors[1].values, Counting(6, 150));
  EXPECT_EQ(file->tensors[9].values, Counting(10, 840));
}

TEST(MiniDnn, CutsAndSurplus) {
  const std::string good = MiniDnnFile(Fa20Layers());
  for (const size_t size : {0, 3, 4, 7, 8, 807, 808, 100000}) {
    ExpectError(good.substr(0, size), "the file ends too early");
  }
  ExpectError(good.substr(0, good.size() - 1), "layer 9 of 10: the file ends");
  ExpectError(good + "x", "found 1 bytes more");
}

TEST(MiniDnn, LayersMustBeTheNetworks) {
  auto layers = Fa20Layers();
  layers[3].pop_back();
  ExpectError(MiniDnnFile(layers),
              "layer 3 of 10: 3151 numbers, expected 3152: fa20's conv2 "
              "[16,4,7,7] and 16 biases");
  layers = Fa20Layers();
  layers[8].clear();
  ExpectError(MiniDnnFile(layers),
              "3 of 10 layers have numbers, expected 4 as in fa20");
  layers = Fa20Layers();
  layers[9] = {1};
  ExpectError(
      MiniDnnFile(layers),
      "layer 9 of 10: 1 numbers, expected none after the 4 layers of fa20");
}

TEST(MiniDnn, ImpossibleCounts) {
  ExpectError(Bytes(int32_t{-1}), "-1 layers");
  ExpectError(Bytes(int32_t{10}) + Bytes(int32_t{-4}),
              "layer 0 of 10: -4 numbers, expected 200");
  ExpectError(Bytes(INT32_MAX) + Bytes(int32_t{0}),
              "layer 1 of 2147483647: the file ends too early");
}

}  // namespace
}  // namespace convlab
