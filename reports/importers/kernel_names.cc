#include "reports/importers/kernel_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace convlab {
namespace {

// The first `width` characters.
absl::string_view Left(absl::string_view text, size_t width) {
  size_t at = 0;
  for (size_t count = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    if (begins && count++ == width) break;
  }
  return text.substr(0, at);
}

// The position of the bracket that is closed at `close`; npos if there is none.
size_t OpeningOf(absl::string_view text, size_t close, char opening) {
  int depth = 0;
  for (size_t i = close + 1; i > 0; --i) {
    if (text[i - 1] == text[close]) ++depth;
    if (text[i - 1] == opening && --depth == 0) return i - 1;
  }
  return absl::string_view::npos;
}

}  // namespace

size_t Width(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  });
}

std::string WithoutUnnamed(absl::string_view name) {
  std::string left = absl::StrReplaceAll(name, {{"(anonymous namespace)::", ""},
                                                {"`anonymous namespace'::", ""},
                                                {"{anonymous}::", ""}});
  const std::string kUnnamed = "unnamed>::";
  for (size_t at = left.find(kUnnamed); at != std::string::npos;
       at = left.find(kUnnamed, at)) {
    const auto is_name = [&](size_t i) {
      return absl::ascii_isalnum(left[i]) || left[i] == '_';
    };
    size_t begin = at;
    if (at > 0 && left[at - 1] == '<' && (at < 2 || !is_name(at - 2))) --begin;
    // Otherwise it is the end of another name.
    if (begin == at && at > 0 && is_name(at - 1)) {
      at += kUnnamed.size();
      continue;
    }
    left.erase(begin, at + kUnnamed.size() - begin);
    at = begin;
  }
  return left;
}

std::string ShortKernelName(absl::string_view whole_name, size_t width) {
  constexpr size_t kNone = absl::string_view::npos;
  const std::string named = WithoutUnnamed(whole_name);
  absl::string_view name = named;
  if (Width(name) <= width) return std::string(name);
  absl::ConsumePrefix(&name, "void ");
  if (Width(name) <= width) return std::string(name);
  absl::string_view parameters;
  if (!name.empty() && name.back() == ')') {
    const size_t opening = OpeningOf(name, name.size() - 1, '(');
    if (opening != kNone && opening > 0) {
      parameters = "(…)";
      name = name.substr(0, opening);
    }
  }
  if (Width(name) + Width(parameters) <= width) {
    return absl::StrCat(name, parameters);
  }
  // Shortens the template arguments, ending them with "…>".
  if (!name.empty() && name.back() == '>') {
    const size_t opening = OpeningOf(name, name.size() - 1, '<');
    const size_t around = 2 + Width(parameters);
    if (opening != kNone && opening > 0 &&
        Width(name.substr(0, opening + 1)) + around <= width) {
      return absl::StrCat(
          absl::StripTrailingAsciiWhitespace(Left(name, width - around)), "…>",
          parameters);
    }
  }
  return absl::StrCat(Left(name, width - 1), "…");
}

}  // namespace convlab
