#include "common/weights/mini_dnn.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/weights/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void ExpectError(absl::string_view content, const std::string& message) {
  const absl::Status status = ParseMiniDnn(content).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(MiniDnn, TensorsAsInOurOwnFiles) {
  std::vector<std::vector<float>> layers = Fa20Layers();
  ASSERT_EQ(layers.size(), 10);
  // Input 5 of output 2, in a matrix stored column by column.
  layers[6][5 + 2 * 1296] = -1;
  const auto file = ParseMiniDnn(MiniDnnFile(layers));
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

TEST(MiniDnn, CutsAndSurplus) {
  const std::string good = MiniDnnFile(Fa20Layers());
  for (const size_t size : {0, 3, 4, 7, 8, 807, 808, 100000}) {
    ExpectError(good.substr(0, size), "the file ends too early");
  }
  ExpectError(good.substr(0, good.size() - 1), "layer 9 of 10: the file ends");
  ExpectError(good + "x", "found 1 bytes more");
}

TEST(MiniDnn, LayersMustBeFa20s) {
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
  ExpectError(MiniDnnFile(layers),
              "layer 9 of 10: 1 numbers, expected none behind fa20's fc2");
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
