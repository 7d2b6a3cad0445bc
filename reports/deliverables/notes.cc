#include "reports/deliverables/notes.h"

#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace convlab {
namespace {

// A heading without its number, in small letters.
std::string KeyOf(absl::string_view heading) {
  heading = absl::StripAsciiWhitespace(heading);
  absl::string_view rest = heading;
  while (!rest.empty() && (absl::ascii_isdigit(rest[0]) || rest[0] == '.')) {
    rest.remove_prefix(1);
  }
  if (rest.size() < heading.size() && absl::StartsWith(rest, " ")) {
    heading = absl::StripLeadingAsciiWhitespace(rest);
  }
  return absl::AsciiStrToLower(heading);
}

std::string PlainText(const Text& text) {
  std::string plain;
  for (const Span& span : text.spans()) plain += span.text;
  return plain;
}

// Text with `code` and **strong** parts; a mark without its end is text.
Text ParseInline(absl::string_view line) {
  Text text;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) text += Text(std::exchange(plain, ""));
  };
  while (!line.empty()) {
    bool is_marked = false;
    for (const absl::string_view mark : {"`", "**"}) {
      if (!absl::StartsWith(line, mark)) continue;
      const size_t end = line.find(mark, mark.size());
      if (end == absl::string_view::npos || end == mark.size()) continue;
      flush();
      const std::string inner(line.substr(mark.size(), end - mark.size()));
      text += mark == "`" ? Code(inner) : Strong(inner);
      line.remove_prefix(end + mark.size());
      is_marked = true;
      break;
    }
    if (is_marked) continue;
    plain += line[0];
    line.remove_prefix(1);
  }
  flush();
  return text;
}

// The blocks of lines without headings.
std::vector<Block> ParseBlocks(const std::vector<std::string>& lines) {
  std::vector<Block> blocks;
  std::string paragraph;
  List list;
  const auto flush = [&] {
    if (!paragraph.empty()) {
      blocks.push_back(Paragraph{ParseInline(std::exchange(paragraph, ""))});
    }
    if (!list.items.empty()) blocks.emplace_back(std::exchange(list, {}));
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    absl::string_view line = absl::StripAsciiWhitespace(lines[i]);
    if (absl::StartsWith(line, "```")) {
      flush();
      Verbatim code;
      while (++i < lines.size() &&
             !absl::StartsWith(absl::StripAsciiWhitespace(lines[i]), "```")) {
        code.lines.push_back(lines[i]);
      }
      blocks.emplace_back(std::move(code));
    } else if (absl::ConsumePrefix(&line, "- ") ||
               absl::ConsumePrefix(&line, "* ")) {
      if (!paragraph.empty()) flush();
      list.items.push_back(ParseInline(line));
    } else if (line.empty()) {
      flush();
    } else if (!list.items.empty() && absl::StartsWith(lines[i], " ")) {
      list.items.back() += Text(" ") + ParseInline(line);
    } else {
      if (!list.items.empty()) flush();
      absl::StrAppend(&paragraph, paragraph.empty() ? "" : " ", line);
    }
  }
  flush();
  return blocks;
}

absl::Status BadLine(int number, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", what));
}

}  // namespace

absl::StatusOr<Notes> Notes::Parse(absl::string_view text) {
  Notes notes;
  std::string section, key, heading;
  int number = 0, begin = 0, fence = 0;
  std::vector<std::string> lines;
  const auto keep = [&] {
    std::vector<Block> blocks = ParseBlocks(std::exchange(lines, {}));
    if (!blocks.empty()) {
      notes.notes_[key] = {begin, heading, std::move(blocks)};
    }
  };
  std::set<std::string> seen;
  bool is_comment = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    absl::ConsumeSuffix(&line, "\r");
    const absl::string_view word = absl::StripAsciiWhitespace(line);
    if (fence == 0 && (is_comment || absl::StartsWith(word, "<!--"))) {
      is_comment = !absl::StrContains(word, "-->");
      continue;
    }
    if (absl::StartsWith(word, "```")) fence = fence > 0 ? 0 : number;
    const bool is_section = fence == 0 && absl::StartsWith(line, "## ");
    const bool is_question = fence == 0 && absl::StartsWith(line, "### ");
    if (!is_section && !is_question) {
      if (fence == 0 && absl::StartsWith(line, "# ")) continue;  // the title
      if (key.empty() && !word.empty()) {
        return BadLine(number,
                       "text before the first section, expected a heading as "
                       "in '## Summary'");
      }
      lines.emplace_back(line);
      continue;
    }
    keep();
    heading = std::string(absl::StripAsciiWhitespace(line.substr(4)));
    if (is_section) {
      heading = std::string(absl::StripAsciiWhitespace(line.substr(3)));
      section = KeyOf(heading);
    } else if (section.empty()) {
      return BadLine(number, absl::StrCat("'", heading,
                                          "' is in no section, expected a "
                                          "heading with ## before it"));
    }
    key = is_section ? section : absl::StrCat(section, "\n", KeyOf(heading));
    begin = number;
    if (!seen.insert(key).second) {
      return BadLine(number, absl::StrCat("'", heading, "' comes twice"));
    }
  }
  if (fence > 0) return BadLine(fence, "``` does not end");
  keep();
  return notes;
}

absl::Status Notes::InsertInto(std::vector<Block>& blocks) const {
  std::set<std::string> used;
  std::vector<std::string> sections;
  std::vector<Block> all;
  std::string section;
  for (Block& block : blocks) {
    const Heading* heading = std::get_if<Heading>(&block);
    std::string key;
    if (heading != nullptr && heading->level <= 3) {
      const std::string title = PlainText(heading->text);
      if (heading->level == 2) {
        section = key = KeyOf(title);
        sections.push_back(title);
      } else {
        key = absl::StrCat(section, "\n", KeyOf(title));
      }
    }
    all.push_back(std::move(block));
    const auto found = notes_.find(key);
    if (key.empty() || found == notes_.end()) continue;
    Append(all, found->second.blocks);
    used.insert(key);
  }
  blocks = std::move(all);
  for (const auto& [key, note] : notes_) {
    if (used.count(key) > 0) continue;
    return BadLine(note.line,
                   absl::StrCat("there is no section '", note.heading,
                                "'; --notes_template writes all that there "
                                "are: ",
                                absl::StrJoin(sections, ", ")));
  }
  return absl::OkStatus();
}

std::string NotesTemplate(const Document& document) {
  std::string text = absl::StrCat(
      "# ", document.title,
      "\n<!-- Your own words, for --notes. What stands below a heading goes "
      "into that\nsection of the report. Empty sections can stay. -->\n");
  for (const Block& block : document.blocks) {
    const Heading* heading = std::get_if<Heading>(&block);
    if (heading == nullptr || heading->level > 3) continue;
    absl::StrAppend(&text, "\n", std::string(heading->level, '#'), " ",
                    PlainText(heading->text), "\n");
  }
  return text;
}

}  // namespace convlab
