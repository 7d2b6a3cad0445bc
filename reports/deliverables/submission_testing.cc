#include "reports/deliverables/submission_testing.h"

#include <variant>

#include "gtest/gtest.h"
#include "reports/document/writers.h"

namespace convlab {

SubmissionOptions For(const std::string& milestone) {
  SubmissionOptions options;
  options.milestone = milestone;
  return options;
}

Submission Made(const Records& records, const SubmissionOptions& options) {
  const auto submission = MakeSubmission(records, options);
  EXPECT_TRUE(submission.ok()) << submission.status();
  return submission.ok() ? *submission : Submission();
}

std::string Markdown(const Records& records, const std::string& milestone) {
  return WriteMarkdown(Made(records, For(milestone)).document);
}

std::string Section(const std::string& markdown, const std::string& title) {
  const size_t begin = markdown.find("</a>" + title);
  if (begin == std::string::npos) return "no section " + title;
  return markdown.substr(begin, markdown.find("\n## ", begin) - begin);
}

std::vector<std::string> Headings(const Document& document) {
  std::vector<std::string> headings;
  for (const Block& block : document.blocks) {
    if (const Heading* heading = std::get_if<Heading>(&block)) {
      if (heading->level == 2) {
        headings.push_back(heading->text.spans()[0].text);
      }
    }
  }
  return headings;
}

}  // namespace convlab
