#include "reports/pdf.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

TEST(Pdf, LengthInPagesIsReadFromTheFile) {
  const std::string pages = "/Kids [ 6 0 R 19 0 R 23 0 R ]\n";
  const auto at = [&](const std::string& place) {
    return PagesOf(absl::StrCat(pages, "/Names [ (end-of-text) [ ", place,
                                " ] (x) [ 6 0 R /XYZ 1 2 0 ] ]"));
  };
  EXPECT_NEAR(*at("6 0 R /XYZ 39.7 805 0"), 0, 1e-9);
  EXPECT_NEAR(*at("23 0 R /XYZ 39.7 613.675 0"), 2.25, 1e-9);
  EXPECT_NEAR(*at("19 0 R /XYZ 39.7 -5 0"), 2, 1e-9);
  EXPECT_FALSE(at("24 0 R /XYZ 39.7 5 0"));
  EXPECT_FALSE(at("6 0 R"));
  EXPECT_FALSE(at("6 0 R /XYZ 39.7 y 0"));
  EXPECT_FALSE(PagesOf(pages));
  EXPECT_FALSE(PagesOf(""));
}

TEST(Pdf, TheLastPageIsAtLeastHalfFull) {
  Document document;
  document.title = "A page and a little";
  for (int i = 0; i < 60; ++i) {
    document.blocks.push_back(Paragraph{absl::StrCat("Paragraph ", i, ".")});
  }
  document.blocks.push_back(Paragraph{Link("a file", "../secret.json")});
  const std::string folder = ::testing::TempDir();
  const absl::Status status = WritePdf(document, folder, "x.pdf");
  if (absl::IsNotFound(status)) GTEST_SKIP() << "weasyprint is not installed";
  ASSERT_TRUE(status.ok()) << status;
  const std::string pdf = *ReadFile(folder + "/x.pdf");
  EXPECT_GE(*PagesOf(pdf), 1.5);
  // A path of this machine would lead nowhere.
  EXPECT_THAT(pdf, ::testing::Not(::testing::HasSubstr("secret.json")));
}

}  // namespace
}  // namespace convlab
