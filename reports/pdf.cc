#include "reports/pdf.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files/files.h"
#include "common/status/status.h"
#include "reports/document/writers.h"
#include "reports/program.h"

namespace convlab {
namespace {

// Of page_style.cc's paper, in points: A4, and its margins of 13 and 14 mm.
constexpr double kTop = 805.0, kBottom = 39.7;

// The least share of the last page that is used, and the one that is aimed at.
constexpr double kLeast = 0.5, kGoal = 0.6;
constexpr double kLargestScale = 1.25;

// The words between `begin` and the next ']'.
std::vector<absl::string_view> WordsAfter(absl::string_view text,
                                          absl::string_view begin) {
  const size_t at = text.find(begin);
  if (at == absl::string_view::npos) return {};
  text.remove_prefix(at + begin.size());
  return absl::StrSplit(text.substr(0, text.find(']')),
                        absl::ByAnyChar(" \n\r"), absl::SkipEmpty());
}

absl::Status Render(const Document& document, double scale,
                    const std::string& folder, const std::string& name) {
  const std::string page = ".print.html";
  RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(folder, "/", page),
                                      WritePrintHtml(document, scale)));
  absl::Status status =
      RunProgram({"weasyprint", "--quiet", page, name}, folder);
  std::remove(absl::StrCat(folder, "/", page).c_str());
  return status;
}

}  // namespace

std::optional<double> PagesOf(absl::string_view pdf) {
  // "(end-of-text) [ 23 0 R /XYZ 39.7 416.3 0 ]" and "/Kids [ 6 0 R 23 0 R ]".
  const std::vector<absl::string_view> place =
      WordsAfter(pdf, absl::StrCat("(", kEndId, ") ["));
  const std::vector<absl::string_view> pages = WordsAfter(pdf, "/Kids [");
  double y = 0;
  if (place.size() < 6 || place[3] != "/XYZ" ||
      !absl::SimpleAtod(place[5], &y)) {
    return std::nullopt;
  }
  for (size_t i = 0; i + 2 < pages.size(); i += 3) {
    if (pages[i] != place[0]) continue;
    const double used = (kTop - y) / (kTop - kBottom);
    const size_t page = i / 3;
    return static_cast<double>(page) + std::clamp(used, 0.0, 1.0);
  }
  return std::nullopt;
}

absl::Status WritePdf(const Document& document, const std::string& folder,
                      const std::string& name) {
  // Both bounds of the scale: the best yet, and one with a page more, to which
  // what cannot be broken has gone.
  double scale = 1, best = 1, too_large = kLargestScale;
  std::optional<double> first;  // pages at scale 1
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    RETURN_IF_ERROR(Render(document, scale, folder, name));
    ASSIGN_OR_RETURN(const std::string pdf,
                     ReadFile(absl::StrCat(folder, "/", name)));
    const std::optional<double> pages = PagesOf(pdf);
    if (!pages || *pages < 1) return absl::OkStatus();
    if (!first) first = pages;
    if (std::ceil(*pages) > std::ceil(*first)) {
      too_large = scale;
    } else {
      const double used = *pages - std::floor(*pages);
      if (used >= kLeast || used == 0) return absl::OkStatus();
      best = scale;
      scale *= 1 + (kGoal - used) / *pages;
    }
    if (scale >= too_large) scale = (best + too_large) / 2;
  }
  return Render(document, best, folder, name);
}

}  // namespace convlab
