#include "reports/importers/numbers.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The values of the numbers, which stand one to a line in a file.
absl::StatusOr<std::vector<double>> ReadAll(
    const std::vector<std::string>& numbers) {
  std::string content;
  std::vector<Cell> cells;
  for (const std::string& number : numbers) {
    cells.push_back({number, content.size()});
    content += number + "\n";
  }
  NumberReader reader(content);
  for (const Cell& cell : cells) {
    const absl::Status status = reader.Observe(cell);
    if (!status.ok()) return status;
  }
  std::vector<double> values;
  for (const Cell& cell : cells) {
    const auto value = reader.Read(cell);
    if (!value.ok()) return value.status();
    values.push_back(*value);
  }
  return values;
}

std::vector<double> Values(const std::vector<std::string>& numbers) {
  const auto values = ReadAll(numbers);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : std::vector<double>();
}

std::string Error(const std::vector<std::string>& numbers) {
  return std::string(ReadAll(numbers).status().message());
}

TEST(Numbers, OfBothLocales) {
  EXPECT_THAT(Values({"65.77", "117.344", "117,344", "27,595,520"}),
              ElementsAre(65.77, 117.344, 117344, 27595520));
  EXPECT_THAT(Values({"65,77", "117.344", "117,344", "27.595.520"}),
              ElementsAre(65.77, 117344, 117.344, 27595520));
  // The sign may come last.
  EXPECT_THAT(Values({"117,344", "1,234.5"}), ElementsAre(117344, 1234.5));
  EXPECT_THAT(Values({"117,344", "1.234,5"}), ElementsAre(117.344, 1234.5));
}

TEST(Numbers, WhatShowsTheLocale) {
  // No thousands are written with four digits or a zero in front.
  EXPECT_THAT(Values({"1.234", "1234.567"}), ElementsAre(1.234, 1234.567));
  EXPECT_THAT(Values({"1.234", "0.123"}), ElementsAre(1.234, 0.123));
  EXPECT_THAT(Values({"1.234", "0,123"}), ElementsAre(1234, 0.123));
  EXPECT_THAT(Values({"1.234", "7.5"}), ElementsAre(1.234, 7.5));
  EXPECT_THAT(Values({"1.234", "7.1234"}), ElementsAre(1.234, 7.1234));
}

TEST(Numbers, OtherSeparatorsOfThousands) {
  EXPECT_THAT(Values({"27 595 520", "1 234,56"}),
              ElementsAre(27595520, 1234.56));
  EXPECT_THAT(Values({"27\xC2\xA0"
                      "595",
                      "27\xE2\x80\xAF"
                      "595.5"}),
              ElementsAre(27595, 27595.5));
  EXPECT_THAT(Values({"27'595'520",
                      "27\xE2\x80\x99"
                      "595"}),
              ElementsAre(27595520, 27595));
}

TEST(Numbers, SignsAndExponents) {
  EXPECT_THAT(Values({"-3", "+4.5", "1e+06", "2.5E-3"}),
              ElementsAre(-3, 4.5, 1e6, 2.5e-3));
}

TEST(Numbers, IntegersNeedNoLocale) {
  EXPECT_THAT(Values({"344", "1234567"}), ElementsAre(344, 1234567));
}

TEST(Numbers, AreRefusedWhereTheyMayBeTwo) {
  EXPECT_EQ(
      Error({"344", "117.344"}),
      "line 2, column 1: '117.344' may be 117.344 or 117344, and no other "
      "number in the file shows whether points or commas are decimal");
  EXPECT_THAT(Error({"117,344"}), HasSubstr("may be 117344 or 117.344"));
}

TEST(Numbers, AreRefusedWhereLocalesMix) {
  EXPECT_EQ(Error({"65.77", "7", "65,77"}),
            "line 3, column 1: '65,77' has a decimal comma, but '65.77' before "
            "it a decimal point");
  EXPECT_THAT(Error({"27.595.520", "27,595,520"}),
              HasSubstr("line 2, column 1: '27,595,520' has a decimal point"));
}

TEST(Numbers, WhatIsNone) {
  for (const char* text :
       {"", "x", "1.2.3", "1,2,3", "12,34,567", "1.234.56", "1,234,56", "1..2",
        "1.", ".5", "1e", "--1", "1'23", "12x", "1e999", "1 2", "0x10"}) {
    EXPECT_THAT(Error({text}), HasSubstr("expected a number, found")) << text;
  }
}

TEST(Numbers, UnitsAreSplitOff) {
  const Cell cell{" 16.772ms ", 10};
  const auto [number, unit] = SplitUnit(cell);
  EXPECT_EQ(number.text, "16.772");
  EXPECT_EQ(number.offset, 11);
  EXPECT_EQ(unit, "ms");
  const Cell percent{"35.95%", 0}, small{"1e-05s", 0}, none{"abc", 0};
  EXPECT_EQ(SplitUnit(percent).second, "%");
  EXPECT_EQ(SplitUnit(small).first.text, "1e-05");
  EXPECT_EQ(SplitUnit(none).first.text, "");
}

TEST(Numbers, UnitsOfTime) {
  EXPECT_EQ(NanosecondsPer("ns"), 1);
  EXPECT_EQ(NanosecondsPer("nsecond"), 1);
  EXPECT_EQ(NanosecondsPer("us"), 1e3);
  EXPECT_EQ(NanosecondsPer("\xC2\xB5s"), 1e3);
  EXPECT_EQ(NanosecondsPer("\xCE\xBCs"), 1e3);
  EXPECT_EQ(NanosecondsPer("usec"), 1e3);
  EXPECT_EQ(NanosecondsPer("milliseconds"), 1e6);
  EXPECT_EQ(NanosecondsPer("s"), 1e9);
  EXPECT_EQ(NanosecondsPer(""), std::nullopt);
  EXPECT_EQ(NanosecondsPer("byte"), std::nullopt);
}

TEST(Numbers, LastDigits) {
  NumberReader point(""), comma("");
  ASSERT_TRUE(point.Observe({"59.8415", 0}).ok());
  ASSERT_TRUE(comma.Observe({"59,8415", 0}).ok());
  EXPECT_DOUBLE_EQ(point.LastDigit({"59.841", 0}), 0.001);
  EXPECT_DOUBLE_EQ(point.LastDigit({"59,841", 0}), 1);
  EXPECT_DOUBLE_EQ(comma.LastDigit({"59.841,25", 0}), 0.01);
  EXPECT_DOUBLE_EQ(point.LastDigit({"1.25e+06", 0}), 1e4);
}

TEST(Numbers, AbsentOnes) {
  for (const char* text : {"", " ", "n/a", "N/A", "nan", "NaN", "-nan", "inf",
                           "-inf", "(!) n/a", "-nan(ind)", "-"}) {
    EXPECT_TRUE(IsAbsent(text)) << text;
  }
  for (const char* text : {"0", "n", "--", "none", "(!) 3"}) {
    EXPECT_FALSE(IsAbsent(text)) << text;
  }
}

}  // namespace
}  // namespace convlab
