#include "reports/markers.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status/status.h"

namespace convlab {
namespace {

// The position of `marker`, which must occur in the document once.
absl::StatusOr<size_t> FindOnce(absl::string_view document,
                                absl::string_view marker) {
  const size_t found = document.find(marker);
  if (found == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no line ", marker));
  }
  if (document.find(marker, found + 1) != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("the line ", marker, " occurs twice"));
  }
  return found;
}

}  // namespace

std::vector<std::string> PassageNames(absl::string_view document) {
  std::vector<std::string> names;
  for (absl::string_view line : absl::StrSplit(document, '\n')) {
    if (absl::ConsumePrefix(&line, "<!-- begin ") &&
        absl::ConsumeSuffix(&line, " -->")) {
      names.emplace_back(line);
    }
  }
  return names;
}

absl::StatusOr<std::string> ReplacePassage(absl::string_view document,
                                           absl::string_view name,
                                           absl::string_view content) {
  const std::string begin_marker = absl::StrCat("<!-- begin ", name, " -->\n");
  const std::string end_marker = absl::StrCat("<!-- end ", name, " -->");
  ASSIGN_OR_RETURN(size_t begin, FindOnce(document, begin_marker));
  ASSIGN_OR_RETURN(const size_t end, FindOnce(document, end_marker));
  begin += begin_marker.size();
  if (end < begin) {
    return absl::InvalidArgumentError(
        absl::StrCat(end_marker, " stands before its beginning"));
  }
  return absl::StrCat(document.substr(0, begin), content, document.substr(end));
}

}  // namespace convlab
