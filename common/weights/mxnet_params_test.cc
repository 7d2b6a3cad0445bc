#include "common/weights/mxnet_params.h"

#include "absl/strings/str_cat.h"
#include "common/weights/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kWithStorageType = MxnetHeader::kStorageType;

std::vector<Tensor> SmallTensors() {
  return {{"arg:new0_weight", DataType::kFloat32, {2, 1, 3}, Counting(6)},
          {"arg:b", DataType::kFloat32, {2}, {0.5f, -1e30f}}};
}

// A file with one array: what stands before its device, then `rest`.
std::string OneArray(absl::string_view shape, absl::string_view rest) {
  return absl::StrCat(Bytes(uint64_t{0x112}), Bytes(uint64_t{0}),
                      Bytes(uint64_t{1}), shape, rest);
}

void ExpectError(absl::string_view content, const std::string& message) {
  const absl::Status status = ParseMxnetParams(content).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(MxnetParams, AllThreeHeaders) {
  for (const MxnetHeader header :
       {kWithStorageType, MxnetHeader::kMagic, MxnetHeader::kOldest}) {
    const auto file = ParseMxnetParams(MxnetFile(header, SmallTensors()));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_EQ(file->tensors.size(), 2);
    EXPECT_EQ(file->tensors[0].name, "arg:new0_weight");
    EXPECT_THAT(file->tensors[0].shape, ElementsAre(2, 1, 3));
    EXPECT_THAT(file->tensors[0].values, ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_EQ(file->tensors[1].name, "arg:b");
    EXPECT_THAT(file->tensors[1].shape, ElementsAre(2));
    EXPECT_THAT(file->tensors[1].values, ElementsAre(0.5f, -1e30f));
  }
}

TEST(MxnetParams, EveryCutIsRefused) {
  for (const MxnetHeader header :
       {kWithStorageType, MxnetHeader::kMagic, MxnetHeader::kOldest}) {
    const std::string good = MxnetFile(header, SmallTensors());
    for (size_t size = 0; size < good.size(); ++size) {
      ExpectError(good.substr(0, size), "the file ends too early");
    }
    ExpectError(good + "x", absl::StrCat("expected the file to end at byte ",
                                         good.size(), ", found 1 bytes more"));
  }
}

TEST(MxnetParams, ErrorsSayWhere) {
  const std::string good = MxnetFile(kWithStorageType, SmallTensors());
  ExpectError(good.substr(0, 26),
              "array 0 of 2: the file ends too early: its header at byte 24: "
              "4 bytes expected, 2 bytes left");
  ExpectError(OneArray(MxnetShape(kWithStorageType, {5, 7}),
                       std::string(12, '\0') + "1234"),
              "values of [5,7] at byte 64: 35 floats expected, 4 bytes left");
}

TEST(MxnetParams, WrongMagicNumber) {
  ExpectError(Bytes(uint64_t{0x113}), "magic number 0x113, expected 0x112");
  // MXNet 1.6's arrays of NumPy shape.
  ExpectError(OneArray(Bytes(uint32_t{0xF993FACA}), ""),
              "array 0 of 1: it begins with 0xF993FACA at byte 24, expected "
              "0xF993FAC9, 0xF993FAC8 or a dimension count");
}

TEST(MxnetParams, SparseArraysAndOtherTypes) {
  ExpectError(OneArray(Bytes(uint32_t{0xF993FAC9}) + Bytes(int32_t{1}), ""),
              "array 0 of 1: storage type 1, expected 0 (a dense array)");
  ExpectError(OneArray(MxnetShape(kWithStorageType, {1}),
                       std::string(8, '\0') + Bytes(int32_t{2}) + "1234"),
              "array 0 of 1: dtype 2, expected 0 (float32)");
}

TEST(MxnetParams, ImpossibleShapes) {
  const std::string rest = std::string(12, '\0') + "1234";
  ExpectError(OneArray(MxnetShape(kWithStorageType, {}), rest),
              "0 dimensions, expected 1 to 32");
  ExpectError(OneArray(MxnetShape(MxnetHeader::kOldest, {}), rest),
              "0 dimensions, expected 1 to 32");
  ExpectError(OneArray(Bytes(uint32_t{0xF993FAC8}) + Bytes(~uint32_t{0}), rest),
              "4294967295 dimensions, expected 1 to 32");
  ExpectError(OneArray(MxnetShape(kWithStorageType, {-1}), rest),
              "impossible shape [-1]");
  const int64_t large = int64_t{1} << 32;
  ExpectError(OneArray(MxnetShape(kWithStorageType, {large, large}), rest),
              "impossible shape [4294967296,4294967296]");
  // Four times this is 0 in 64 bits.
  ExpectError(OneArray(MxnetShape(kWithStorageType, {large, large / 4}), rest),
              "4611686018427387904 floats expected, 4 bytes left");
}

TEST(MxnetParams, FalseCounts) {
  ExpectError(Bytes(uint64_t{0x112}) + Bytes(uint64_t{0}) + Bytes(~uint64_t{0}),
              "array 0 of 18446744073709551615: the file ends too early");
  ExpectError(OneArray(MxnetShape(kWithStorageType, {1}),
                       std::string(12, '\0') + "1234" + Bytes(uint64_t{2})),
              "1 arrays, but 2 names");
  ExpectError(OneArray(MxnetShape(kWithStorageType, {1}),
                       std::string(12, '\0') + "1234" + Bytes(uint64_t{1}) +
                           Bytes(~uint64_t{0}) + "name"),
              "a name's letters at byte 76: 18446744073709551615 bytes "
              "expected, 4 bytes left");
}

TEST(MxnetParams, DuplicateNames) {
  std::vector<Tensor> tensors = SmallTensors();
  tensors[1].name = tensors[0].name;
  ExpectError(MxnetFile(kWithStorageType, tensors),
              "two arrays are named 'arg:new0_weight'");
}

}  // namespace
}  // namespace convlab
