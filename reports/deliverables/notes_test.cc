#include "reports/deliverables/notes.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/deliverables/submission_testing.h"
#include "reports/document/writers.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

absl::StatusOr<Submission> MadeWith(const std::string& notes) {
  SubmissionOptions options = For("m4");
  options.notes = notes;
  return MakeSubmission(CompleteRecords(), options);
}

TEST(Notes, StandBelowTheirHeadings) {
  const auto made = MadeWith(
      "# Mine\n<!-- a\ncomment -->\n## summary\nFour times\nas **fast** as "
      "`naive`.\n\n## 9.9 Optimization: fast\n### Why should it help?\n- one\n"
      "  more\n- <b>two</b>\n```\n### x\n```\n### Did it help?\n");
  ASSERT_TRUE(made.ok()) << made.status();
  const std::string markdown = WriteMarkdown(made->document);
  EXPECT_THAT(
      Section(markdown, "Summary"),
      StartsWith("</a>Summary\n\nFour times as **fast** as `naive`.\n"));
  EXPECT_THAT(Section(markdown, "4.2 Optimization: fast"),
              HasSubstr("### Why should it help?\n\n- one more\n- "
                        "&lt;b\\>two&lt;/b\\>\n\n```\n### x\n```\n\n"
                        "*Generated:* Why rung 2"));
  EXPECT_THAT(WriteHtml(made->document),
              AllOf(HasSubstr("<li>&lt;b&gt;two&lt;/b&gt;</li>"),
                    Not(HasSubstr("<b>"))));
}

TEST(Notes, TheTemplateIsAcceptedAndChangesNothing) {
  const auto without = MadeWith("");
  ASSERT_TRUE(without.ok());
  EXPECT_THAT(without->notes_template,
              AllOf(HasSubstr("## 4.2 Optimization: fast\n\n### What is it?\n"),
                    HasSubstr("## Summary\n")));
  const auto with = MadeWith(without->notes_template);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(WriteMarkdown(with->document), WriteMarkdown(without->document));
}

TEST(Notes, ErrorsNameTheLine) {
  for (const auto& [notes, error] :
       {std::pair("## Summary\nx\n## Nothing\ny\n",
                  "line 3: there is no section 'Nothing'; --notes_template"),
        {"x\n", "line 1: text before the first section"},
        {"\n### Why\n", "line 2: 'Why' is in no section"},
        {"## Summary\n## 1 SUMMARY\n", "line 2: '1 SUMMARY' comes twice"},
        {"## Summary\n```\n## x\n", "line 2: ``` does not end"}}) {
    EXPECT_THAT(std::string(MadeWith(notes).status().message()),
                StartsWith(error));
  }
}

}  // namespace
}  // namespace convlab
