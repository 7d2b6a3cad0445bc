#include "kernels/convolution/checking/finds.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status/status.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

// Generated from finds.txt: kFindsText.
#include "kernels/convolution/checking/finds.inc"

absl::StatusOr<Find> ParseFind(absl::string_view line) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(line, absl::MaxSplits(' ', 1));
  const std::vector<absl::string_view> sizes = absl::StrSplit(parts.first, ',');
  Find find;
  Problem& p = find.problem;
  int64_t* const fields[] = {&p.batch, &p.channels, &p.height,
                             &p.width, &p.filters,  &p.kernel_size};
  bool right = sizes.size() == std::size(fields);
  for (size_t i = 0; right && i < sizes.size(); ++i) {
    right = absl::SimpleAtoi(sizes[i], fields[i]);
  }
  if (!right) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", parts.first, "': expected sizes B,C,H,W,M,K"));
  }
  RETURN_IF_ERROR(CheckProblem(p));
  ASSIGN_OR_RETURN(find.recipe, ParseRecipe(parts.second));
  return find;
}

}  // namespace

std::string ToString(const Find& find) {
  const Problem& p = find.problem;
  return absl::StrCat(p.batch, ",", p.channels, ",", p.height, ",", p.width,
                      ",", p.filters, ",", p.kernel_size, " ",
                      ToString(find.recipe));
}

absl::StatusOr<std::vector<Find>> ParseFinds(absl::string_view text) {
  std::vector<Find> finds;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find("//")));
    if (line.empty()) continue;
    auto find = ParseFind(line);
    if (!find.ok()) {
      return Annotate(find.status(), absl::StrCat("line ", number));
    }
    finds.push_back(*std::move(find));
  }
  return finds;
}

absl::StatusOr<std::vector<Find>> CommittedFinds() {
  auto finds = ParseFinds(kFindsText);
  return finds.ok() ? finds : Annotate(finds.status(), "finds.txt");
}

}  // namespace convlab
