#include "reports/importers/text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Fields(absl::string_view content, size_t& offset) {
  std::vector<std::string> fields;
  const auto record = ReadCsvRecord(content, offset);
  EXPECT_TRUE(record.ok()) << record.status();
  if (!record.ok()) return fields;
  for (const Cell& cell : *record) fields.push_back(cell.text);
  return fields;
}

TEST(Text, PlacesCountLinesAndCharacters) {
  const std::string content = "one\n\xC2\xB5s two\nthree";
  EXPECT_EQ(ErrorAt(content, 0, "x").message(), "line 1, column 1: x");
  EXPECT_EQ(ErrorAt(content, content.find("two"), "x").message(),
            "line 2, column 4: x");
  EXPECT_EQ(ErrorAt(content, content.size(), "x").message(),
            "line 3, column 6: x");
}

TEST(Text, LinesEndWithAndWithoutReturns) {
  const std::string content = "a\r\n\nb";
  EXPECT_EQ(LineAt(content, 0).text, "a");
  EXPECT_EQ(NextLine(content, 0), 3);
  EXPECT_EQ(LineAt(content, 3).text, "");
  EXPECT_EQ(LineAt(content, 4).text, "b");
  EXPECT_EQ(NextLine(content, 4), content.size());
}

TEST(Csv, FieldsWithCommasQuotesAndLines) {
  const std::string content = "a,\"b, c\",\"say \"\"d\"\"\"\r\n\"e\nf\",,\n";
  size_t offset = 0;
  EXPECT_THAT(Fields(content, offset), ElementsAre("a", "b, c", "say \"d\""));
  EXPECT_THAT(Fields(content, offset), ElementsAre("e\nf", "", ""));
  EXPECT_EQ(offset, content.size());
}

TEST(Csv, TheLastLineMayLackItsEnd) {
  size_t offset = 0;
  EXPECT_THAT(Fields("a,\"b\"", offset), ElementsAre("a", "b"));
  offset = 0;
  EXPECT_THAT(Fields("a,", offset), ElementsAre("a", ""));
}

TEST(Csv, BrokenQuotes) {
  size_t offset = 2;
  EXPECT_EQ(ReadCsvRecord("x\na,\"b\n", offset).status().message(),
            "line 2, column 3: the file ends inside this quoted field");
  offset = 0;
  EXPECT_THAT(std::string(ReadCsvRecord("\"a\"b,c", offset).status().message()),
              HasSubstr("line 1, column 4: expected a comma"));
}

TEST(Csv, ALineIsARecordOrNone) {
  const auto record = ReadCsvLine({"a,\"b\"", 10});
  ASSERT_TRUE(record.has_value());
  ASSERT_EQ(record->size(), 2u);
  EXPECT_EQ((*record)[1].text, "b");
  EXPECT_EQ((*record)[1].offset, 12u);
  EXPECT_FALSE(ReadCsvLine({"a,\"b", 10}).has_value());
}

TEST(Csv, FieldsAreWrittenAsTheyAreRead) {
  for (const char* text : {"a", "", "a, b", "say \"c\"", "d\ne"}) {
    size_t offset = 0;
    EXPECT_THAT(Fields(CsvField(text), offset), ElementsAre(text));
  }
}

TEST(Text, QuotedIsShortAndOnOneLine) {
  EXPECT_EQ(InQuotes("a\nb"), "'a\\nb'");
  EXPECT_EQ(InQuotes(std::string(100, 'x')), "'" + std::string(60, 'x') + "…'");
}

}  // namespace
}  // namespace convlab
