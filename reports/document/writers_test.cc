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
      Figure{{"chart", "", ""}, kHostile, kHostile},
      Verbatim{{kHostile, "```", "</pre>"}},
  };
  return document;
}

TEST(Html, HostileTextIsOnlyText) {
  const std::string html =
      WriteHtml(Hostile(), {{"chart", "<svg>" + std::string(kHostile)}});
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("</pre></pre>")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; "
                              "a|b *x* `y` &quot;&amp;amp;"));
  EXPECT_THAT(html, HasSubstr("src=\"data:image/svg+xml;base64,"));
  EXPECT_EQ(EscapeHtml(std::string("a\0\x1b\n\tb", 6)), "a\\x00\\x1b\n\tb");
}

TEST(Markdown, HostileTextIsOnlyText) {
  const std::string markdown = WriteMarkdown(Hostile(), {{"chart", "<svg>"}});
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
  EXPECT_EQ(WriteMarkdown(document, {}),
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

TEST(Writers, FigureThatIsNotDrawnNamesDataAndScript) {
  Document document;
  document.blocks = {Figure{{"x", "", ""}, "what", "caption"}};
  EXPECT_THAT(WriteMarkdown(document, {}),
              AllOf(HasSubstr("`charts/x.dat`"), HasSubstr("`charts/x.gp`"),
                    Not(HasSubstr("!["))));
  EXPECT_THAT(WriteHtml(document, {}),
              AllOf(HasSubstr("charts/x.dat"), HasSubstr("charts/x.gp"),
                    Not(HasSubstr("<img"))));
}

TEST(Html, IsOneFileThatFitsAPhone) {
  const std::string html = WriteHtml(Hostile(), {});
  EXPECT_THAT(html,
              AllOf(HasSubstr("<meta charset=\"utf-8\">"),
                    HasSubstr("width=device-width"), Not(HasSubstr("http://")),
                    Not(HasSubstr("https://")), Not(HasSubstr("src=\"c"))));
}

}  // namespace
}  // namespace convlab
