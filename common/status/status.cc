#include "common/status/status.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace convlab {
namespace {

bool IsContinuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// A character of UTF-8, or one byte that is none.
struct Character {
  uint32_t code = 0;
  size_t size = 1;
  bool valid = true;
};

Character FirstCharacter(absl::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1, true};
  const Character none = {0, 1, false};
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return none;
  uint32_t code = first & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) {
    if (!IsContinuation(text[i])) return none;
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  // Forms that are longer than they need to be, halves of pairs, and what lies
  // beyond the last character.
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid = code >= kLeast[size] && code <= 0x10ffff &&
                     !(code >= 0xd800 && code < 0xe000);
  return valid ? Character{code, size, true} : none;
}

// Beyond ASCII: C1, marks of direction, their embeddings, overrides and
// isolates, ends of lines and paragraphs, and marks that nothing shows.
bool IsControl(uint32_t code) {
  constexpr std::pair<uint32_t, uint32_t> kControls[] = {
      {0x80, 0x9f},     {0x61c, 0x61c},   {0x200b, 0x200f}, {0x2028, 0x202e},
      {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}};
  return std::any_of(std::begin(kControls), std::end(kControls),
                     [&](const auto& range) {
                       return code >= range.first && code <= range.second;
                     });
}

}  // namespace

int ExitStatus(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
      return 2;
    case absl::StatusCode::kUnavailable:
      return 3;
    default:
      return 1;
  }
}

absl::Status Annotate(const absl::Status& status, absl::string_view where) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(where, ": ", status.message()));
}

namespace {

// Writes out all that nobody should see raw, except characters in `kept`.
std::string WithoutControls(absl::string_view text, absl::string_view kept) {
  std::string line;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    const absl::string_view bytes = text.substr(0, character.size);
    text.remove_prefix(character.size);
    const bool ascii = character.code < 0x20 || character.code == 0x7f;
    if (!character.valid || (ascii && !absl::StrContains(kept, bytes))) {
      line += absl::CHexEscape(bytes);
    } else if (IsControl(character.code)) {
      absl::StrAppendFormat(&line, "\\u%04x", character.code);
    } else {
      absl::StrAppend(&line, bytes);
    }
  }
  return line;
}

// Leaves out the middle of a text of more than `most` bytes.
std::string WithoutMiddle(absl::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  constexpr absl::string_view kLeftOut = "…";
  size_t begin = (most - kLeftOut.size()) / 2;
  size_t end = text.size() - begin;
  while (IsContinuation(text[begin])) --begin;
  while (end < text.size() && IsContinuation(text[end])) ++end;
  return absl::StrCat(text.substr(0, begin), kLeftOut, text.substr(end));
}

}  // namespace

size_t BytesAsUtf8(absl::string_view text) {
  constexpr size_t kReplacement = 3;
  size_t bytes = 0;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    bytes += character.valid ? character.size : kReplacement;
    text.remove_prefix(character.size);
  }
  return bytes;
}

std::string EscapeMarkup(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"},
                                    {"<", "&lt;"},
                                    {">", "&gt;"},
                                    {"\"", "&quot;"},
                                    {"'", "&#39;"}});
}

std::string OneLine(absl::string_view text) {
  return WithoutControls(text, "");
}

std::string Printable(absl::string_view text) {
  return WithoutControls(text, "\n\t");
}

std::string ErrorLine(absl::string_view program, absl::string_view message) {
  std::string line = absl::StrCat(program, ": ", OneLine(message));
  if (line.size() <= kLongestErrorLine) return line;
  constexpr size_t kLongestWord = 60;
  line =
      absl::StrJoin(absl::StrSplit(line, ' '), " ",
                    [](std::string* out, absl::string_view word) {
                      absl::StrAppend(out, WithoutMiddle(word, kLongestWord));
                    });
  return WithoutMiddle(line, kLongestErrorLine);
}

int FinishProgram(absl::string_view program, absl::Status status) {
  // An error of an earlier flush is remembered by the stream.
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!written && status.ok()) {
    status = absl::InternalError("cannot write standard output");
  }
  if (!status.ok()) {
    absl::FPrintF(stderr, "%s\n", ErrorLine(program, status.message()));
  }
  return ExitStatus(status);
}

}  // namespace convlab
