#include "common/weights/safetensors.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/weights/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

void ExpectError(absl::string_view content, const std::string& message) {
  const absl::Status status = ParseSafetensors(content).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

// The error for a file whose header is `header`, with eight bytes of data.
void ExpectHeaderError(absl::string_view header, const std::string& message) {
  ExpectError(SafetensorsFile(header, "12345678"), message);
}

void ExpectNotWritten(const TensorFile& file, const std::string& message) {
  const absl::Status status = SerializeSafetensors(file).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

// A half with these bits as a float, by way of a file.
float Expanded(uint16_t bits) {
  const auto file = ParseSafetensors(SafetensorsFile(
      R"({"x":{"dtype":"F16","shape":[],"data_offsets":[0,2]}})", Bytes(bits)));
  return file->tensors[0].values[0];
}

// The bits of a float as a half, by way of a file; -1 where it is refused.
int Rounded(float value) {
  const auto file =
      SerializeSafetensors({{{"x", DataType::kFloat16, {}, {value}}}, {}});
  if (!file.ok()) return -1;
  const std::string bytes = file->substr(file->size() - 2);
  return static_cast<uint8_t>(bytes[0]) | static_cast<uint8_t>(bytes[1]) << 8;
}

TEST(Safetensors, ParsesAFileOfAnotherWriter) {
  const auto file = ParseSafetensors(SafetensorsFile(
      R"( {"__metadata__":{"network":"fa19","note":"\u00fc"},
  "b":{"data_offsets":[8,12],"dtype":"F16","shape":[2,1]},
  "a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   )",
      FloatBytes({1.5f, -2}) + Bytes(uint16_t{0x3c00}) +
          Bytes(uint16_t{0xc500})));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->metadata,
              ElementsAre(Pair("network", "fa19"), Pair("note", "\xc3\xbc")));
  ASSERT_EQ(file->tensors.size(), 2);
  EXPECT_EQ(file->tensors[0].name, "a");
  EXPECT_EQ(file->tensors[0].type, DataType::kFloat32);
  EXPECT_THAT(file->tensors[0].shape, ElementsAre(2));
  EXPECT_THAT(file->tensors[0].values, ElementsAre(1.5f, -2));
  EXPECT_EQ(file->tensors[1].name, "b");
  EXPECT_EQ(file->tensors[1].type, DataType::kFloat16);
  EXPECT_THAT(file->tensors[1].shape, ElementsAre(2, 1));
  EXPECT_THAT(file->tensors[1].values, ElementsAre(1, -5));
}

TEST(Safetensors, RoundTrip) {
  const TensorFile file = {
      {{"z", DataType::kFloat32, {2, 3}, Counting(6)},
       {"empty", DataType::kFloat32, {4, 0}, {}},
       {"a", DataType::kFloat16, {3}, {-0.0f, 65504, 5.9604645e-8f}},
       {"name \"\n\xc3\xbc", DataType::kFloat32, {}, {1e-45f}}},
      {{"recipe", "line\n\"quoted\""}}};
  const auto content = SerializeSafetensors(file);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->find(std::string("\0\0\0\0{", 5)), 4);
  const auto again = ParseSafetensors(*content);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->metadata, file.metadata);
  ASSERT_EQ(again->tensors.size(), file.tensors.size());
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    EXPECT_EQ(again->tensors[i].name, file.tensors[i].name);
    EXPECT_EQ(again->tensors[i].type, file.tensors[i].type);
    EXPECT_EQ(again->tensors[i].shape, file.tensors[i].shape);
    EXPECT_EQ(again->tensors[i].values, file.tensors[i].values);
  }
  EXPECT_TRUE(std::signbit(again->tensors[2].values[0]));
}

TEST(Safetensors, NoTensors) {
  EXPECT_TRUE(ParseSafetensors(*SerializeSafetensors({}))->tensors.empty());
}

TEST(Safetensors, EveryHalfSurvives) {
  for (int bits = 0; bits <= 0xffff; ++bits) {
    const float value = Expanded(static_cast<uint16_t>(bits));
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31 && fraction != 0) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      continue;
    }
    // IEEE 754 binary16, word for word.
    const float magnitude =
        exponent == 31  ? std::numeric_limits<float>::infinity()
        : exponent == 0 ? std::ldexp(fraction, -24)
                        : std::ldexp(1024 + fraction, exponent - 25);
    ASSERT_EQ(value, bits >> 15 ? -magnitude : magnitude) << bits;
    ASSERT_EQ(Rounded(value), bits);
  }
}

TEST(Safetensors, HalvesAreRoundedToNearestEven) {
  EXPECT_EQ(Rounded(1 + 0.5f / 1024), 0x3c00);  // tie, down
  EXPECT_EQ(Rounded(1 + 1.5f / 1024), 0x3c02);  // tie, up
  EXPECT_EQ(Rounded(std::nextafter(1 + 0.5f / 1024, 2.0f)), 0x3c01);
  EXPECT_EQ(Rounded(std::ldexp(1.0f, -25)), 0);  // tie, to 0
  EXPECT_EQ(Rounded(std::ldexp(1.5f, -25)), 1);
  EXPECT_EQ(Rounded(std::ldexp(1023.75f, -24)), 0x0400);  // to normal
  EXPECT_EQ(Rounded(65519.996f), 0x7bff);
  EXPECT_EQ(Rounded(65520), -1);
  EXPECT_EQ(Rounded(-1e30f), -1);
  EXPECT_TRUE(
      std::isnan(Expanded(static_cast<uint16_t>(Rounded(std::nanf(""))))));
}

TEST(Safetensors, HeaderBeyondTheFile) {
  ExpectError("1234", "the header's length at byte 0: 8 bytes expected, 4");
  ExpectError(Bytes(uint64_t{9}) + "{}",
              "the header at byte 8: 9 bytes expected, 2 bytes left");
  ExpectError(Bytes(~uint64_t{0}) + "{}",
              "length is 18446744073709551615 bytes, expected at most 1048576");
}

TEST(Safetensors, HeaderThatIsNotTheFormats) {
  for (const char* header : {"", "[]", "1", "{", "{}}", "{\"a\":}", "\xff"}) {
    ExpectHeaderError(header, "not a JSON object, or is damaged");
  }
  ExpectHeaderError(R"({"a":1})", "tensor 'a': the header's entry is not");
  ExpectHeaderError(R"({"__metadata__":[]})", "__metadata__ is not an object");
  ExpectHeaderError(R"({"__metadata__":{"a":1}})",
                    "__metadata__ 'a' is not a string");
}

TEST(Safetensors, DuplicateKeys) {
  const std::string tensor =
      R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  ExpectHeaderError(absl::StrCat("{\"a\":", tensor, ",\"a\":", tensor, "}"),
                    "the header has 'a' twice");
  ExpectHeaderError(
      R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      "the header has 'dtype' twice");
  ExpectHeaderError(R"({"__metadata__":{},"__metadata__":{}})",
                    "the header has '__metadata__' twice");
}

TEST(Safetensors, DeepNesting) {
  ExpectHeaderError(R"({"a":{"shape":[[1]]}})", "nested too deep");
  for (const char* open : {"[", "{\"a\":"}) {
    std::string deep = "{\"a\":";
    while (deep.size() < 1000000) deep += open;
    ExpectHeaderError(deep, "nested too deep");
  }
}

TEST(Safetensors, EntriesThatAreIncompleteOrOfTheWrongKind) {
  ExpectHeaderError(R"({"a":{"shape":[2],"data_offsets":[0,8]}})",
                    "tensor 'a': dtype is missing or not a string");
  ExpectHeaderError(R"({"a":{"dtype":1,"shape":[2],"data_offsets":[0,8]}})",
                    "tensor 'a': dtype is missing or not a string");
  for (const char* type : {"BF16", "F64", "I32", "f32"}) {
    ExpectHeaderError(
        absl::StrCat(R"({"a":{"dtype":")", type,
                     R"(","shape":[2],"data_offsets":[0,8]}})"),
        absl::StrCat("tensor 'a': dtype '", type, "', expected F32 or F16"));
  }
  ExpectHeaderError(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})",
                    "tensor 'a': shape is missing or not a list");
  ExpectHeaderError(R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})",
                    "tensor 'a': shape is missing or not a list");
  ExpectHeaderError(R"({"a":{"dtype":"F32","shape":[2]}})",
                    "tensor 'a': data_offsets is missing or not a list");
}

TEST(Safetensors, ShapesAndOffsetsThatAreNotSizes) {
  for (const char* value :
       {"-2", "2.0", "\"2\"", "null", "1e30", "9223372036854775808"}) {
    ExpectHeaderError(absl::StrCat(R"({"a":{"dtype":"F32","shape":[1,)", value,
                                   R"(],"data_offsets":[0,8]}})"),
                      "shape element 1 is not a non-negative integer");
  }
  for (const char* offsets : {"[0]", "[0,8,8]", "[8,0]"}) {
    ExpectHeaderError(
        absl::StrCat(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)",
                     offsets, "}}"),
        absl::StrCat("data_offsets ", offsets, ", expected a begin"));
  }
  ExpectHeaderError(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],)"
                    R"("data_offsets":[0,8]}})",
                    "impossible shape [4294967296,4294967296]");
  // Four times this is 0 in 64 bits.
  ExpectHeaderError(R"({"a":{"dtype":"F32","shape":[4611686018427387904],)"
                    R"("data_offsets":[0,0]}})",
                    "span 0 bytes, but F32 of shape [4611686018427387904] is");
  ExpectHeaderError(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
                    "data_offsets [0,8] span 8 bytes, but F32 of shape [3] is "
                    "3 values of 4");
  ExpectHeaderError(R"({"a":{"dtype":"F16","shape":[3],"data_offsets":[0,7]}})",
                    "span 7 bytes, but F16 of shape [3] is 3 values of 2");
}

// Two F16 scalars at the given places in eight bytes of data.
std::string TwoScalars(int first, int second) {
  const auto entry = [](int begin) {
    return absl::StrCat(R"({"dtype":"F16","shape":[],"data_offsets":[)", begin,
                        ",", begin + 2, "]}");
  };
  return absl::StrCat("{\"a\":", entry(first), ",\"b\":", entry(second), "}");
}

TEST(Safetensors, DataWithGapsOverlapOrSurplus) {
  ExpectHeaderError(TwoScalars(2, 4),
                    "tensor 'a' begins at byte 2 of the data, not next to");
  ExpectHeaderError(TwoScalars(0, 4),
                    "tensor 'b' begins at byte 4 of the data, not next to the "
                    "one before it, which ends at 2");
  ExpectHeaderError(TwoScalars(0, 1),
                    "tensor 'b' begins at byte 1 of the "
                    "data, overlapping");
  ExpectHeaderError(TwoScalars(0, 0), "overlapping");
  ExpectHeaderError(TwoScalars(0, 2),
                    "describes 4 bytes of data, the file holds 8");
  ExpectHeaderError(
      R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})",
      "describes 12 bytes of data, the file holds 8");
}

TEST(Safetensors, WhatCannotBeWritten) {
  const DataType f32 = DataType::kFloat32, f16 = DataType::kFloat16;
  ExpectNotWritten({{{"a", f32, {2}, {1}}}, {}},
                   "tensor 'a': 1 values, but shape [2] has 2");
  ExpectNotWritten({{{"a", f32, {-1}, {}}}, {}},
                   "tensor 'a': impossible shape [-1]");
  ExpectNotWritten({{{"a", f32, {}, {1}}, {"a", f32, {}, {1}}}, {}},
                   "tensor 'a': the name is taken");
  ExpectNotWritten({{{"__metadata__", f32, {}, {1}}}, {}}, "name is taken");
  ExpectNotWritten({{{"\xff", f32, {}, {1}}}, {}}, "the name is not UTF-8");
  ExpectNotWritten({{}, {{"a", "\xff"}}}, "'a' = '\\377' is not UTF-8");
  ExpectNotWritten({{{"a", f16, {2}, {1, 70000}}}, {}},
                   "tensor 'a': value 70000 at index 1 is beyond");
  ExpectNotWritten({{}, {{"a", std::string(1 << 20, 'a')}}},
                   "expected at most 1048576");
}

}  // namespace
}  // namespace convlab
