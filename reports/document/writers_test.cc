#include "reports/document/writers.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Text with characters that formats interpret.
constexpr char kHostile[] = "<script>alert('1')</script> a|b *x* `y` \"&amp;";

Document Hostile() {
  Document document;
  document.title = kHostile;
  document.blocks = {
      Heading{2, kHostile},
      Paragraph{Text(kHostile) + Code(kHostile) + Strong(kHostile)},
      List{{kHostile}},
      Table{{{kHostile, false}, {"n"}}, {{kHostile, Code(kHostile)}}},
      Figure{{"chart", "<svg>drawn</svg>", ""}, kHostile, kHostile},
      Verbatim{{kHostile, "```", "</pre>"}},
  };
  return document;
}

TEST(Html, HostileTextIsOnlyText) {
  const std::string html = WriteHtml(Hostile());
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("</pre></pre>")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; "
                              "a|b *x* `y` &quot;&amp;amp;"));
  EXPECT_THAT(html, HasSubstr("<svg>drawn</svg>"));
  EXPECT_EQ(EscapeHtml(std::string("a\0\x1b\n\tb", 6)), "a\\x00\\x1b\n\tb");
}

TEST(Markdown, HostileTextIsOnlyText) {
  const std::string markdown = WriteMarkdown(Hostile());
  constexpr char kEscaped[] =
      "&lt;script\\>alert('1')&lt;/script\\> a\\|b \\*x\\* \\`y\\` "
      "\"&amp;amp;";
  EXPECT_THAT(markdown,
              AllOf(HasSubstr(std::string("# ") + kEscaped + "\n"),
                    HasSubstr(std::string("- ") + kEscaped + "\n"),
                    HasSubstr(std::string("![") + kEscaped + "](charts/")));
  // A code span ends at a run of as many backticks as began it; in a table a
  // bar ends the cell even there.
  EXPECT_THAT(markdown,
              HasSubstr("``<script>alert('1')</script> a|b *x* `y` \"&amp;``"));
  EXPECT_THAT(markdown, HasSubstr("``<script>alert('1')</script> a\\|b *x*"));
  EXPECT_THAT(markdown, HasSubstr("````\n<script>alert('1')</script> a|b *x* "
                                  "`y` \"&amp;\n```\n</pre>\n````\n"));
}

TEST(Markdown, LinesThatBeginLikeMarkup) {
  Document document;
  document.title = "T";
  document.blocks = {Paragraph{"1. not a list"}, Paragraph{"- nor this"},
                     Paragraph{"# no heading"}, Paragraph{"a\nb"},
                     Paragraph{"12 images"}};
  EXPECT_EQ(WriteMarkdown(document),
            "# T\n\n1\\. not a list\n\n\\- nor this\n\n\\# no heading\n\n"
            "a\\\\nb\n\n12 images\n");
}

TEST(Markdown, TablesAreAlignedOnATerminal) {
  EXPECT_EQ(WriteBlocks({Table{{{"name", false}, {"ms"}},
                               {{"größe", "1"}, {"b", "22.5"}}},
                         Paragraph{"end"}}),
            "| name  |   ms |\n"
            "| ----- |-----:|\n"
            "| größe |    1 |\n"
            "| b     | 22.5 |\n\nend\n");
}

TEST(Markdown, TablesFitATerminalThatIsNarrow) {
  const std::vector<Block> blocks = {
      Table{{{"name", false}, {"ms"}},
            {{"ö123456789012345678901234567890", "12.3"}}}};
  EXPECT_EQ(WriteBlocks(blocks, 24),
            "| name          |   ms |\n"
            "| ------------- |-----:|\n"
            "| ö12345678901… | 12.3 |\n");
  EXPECT_EQ(WriteBlocks(blocks, 200), WriteBlocks(blocks));
}

TEST(Writers, ContentsAreTheHeadingsWithAnId) {
  Document document;
  document.blocks = {Contents{}, Heading{2, "1.1 First", "first"},
                     Heading{3, "without"}, Heading{3, "<b>", "b"}};
  EXPECT_THAT(WriteMarkdown(document),
              AllOf(HasSubstr("- [1.1 First](#first)\n  - [&lt;b\\>](#b)\n"),
                    HasSubstr("## <a id=\"first\"></a>1.1 First\n"),
                    Not(HasSubstr("[without]"))));
  EXPECT_THAT(WriteHtml(document),
              AllOf(HasSubstr("<a href=\"#first\">1.1 First</a>"),
                    HasSubstr("<h2 id=\"first\">1.1 First<a class=\"up\" "
                              "href=\"#contents\""),
                    HasSubstr("<h3>without</h3>")));
}

TEST(Writers, GeneratedProseIsMarked) {
  Document document;
  document.blocks = {Generated("1. It helped."), Paragraph{"Mine."}};
  EXPECT_THAT(
      WriteMarkdown(document),
      AllOf(HasSubstr("*Generated:* 1. It helped.\n"), HasSubstr("\nMine.\n")));
  EXPECT_THAT(WriteHtml(document),
              AllOf(HasSubstr("<p class=\"generated\"><span "
                              "class=\"by\">generated</span>1. It helped."),
                    HasSubstr("<p>Mine.</p>")));
}

TEST(Writers, ChartsAreInThePageAndFilesBesideMarkdown) {
  Document document;
  document.blocks = {
      Figure{{"x", "<svg>wide</svg>", "<svg>narrow</svg>"}, "what", "caption"}};
  EXPECT_THAT(WriteMarkdown(document), HasSubstr("![what](charts/x.svg)\n"));
  EXPECT_THAT(
      WriteHtml(document),
      AllOf(HasSubstr("<div class=\"wide\"><svg>wide</svg></div>"),
            HasSubstr("<div class=\"narrow\"><svg>narrow</svg></div>")));
  const auto files = ChartFiles(document);
  ASSERT_EQ(files.count("x.svg"), 1);
  EXPECT_THAT(files.at("x.svg"),
              AllOf(HasSubstr("prefers-color-scheme: dark"), HasSubstr("wide"),
                    Not(HasSubstr("narrow"))));
}

TEST(Html, ATableWithoutHeadingsHasNoHead) {
  Document document;
  document.blocks = {Table{{{"", false}, {"", false}}, {{"GPU", "X"}}}};
  EXPECT_THAT(WriteHtml(document), Not(HasSubstr("<thead>")));
}

TEST(Html, IsOneFileThatFitsAPhone) {
  const std::string html = WriteHtml(Hostile());
  EXPECT_THAT(
      html, AllOf(HasSubstr("<meta charset=\"utf-8\">"),
                  HasSubstr("width=device-width"), Not(HasSubstr("src=\"http")),
                  Not(HasSubstr("href=\"http")), Not(HasSubstr("src=\"c"))));
}

}  // namespace
}  // namespace convlab
