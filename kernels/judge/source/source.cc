#include "kernels/judge/source/source.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace convlab {
namespace {

bool IsWord(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// Replaces text[begin, end) by spaces, except line ends.
void Blank(std::string& text, size_t begin, size_t end) {
  for (size_t i = begin; i < std::min(end, text.size()); ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
}

// The offset behind the literal that begins with the quote at `begin`. A
// literal that is not closed ends with its line.
size_t EndOfLiteral(absl::string_view text, size_t begin) {
  const char quote = text[begin];
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote || text[i] == '\n') {
      return text[i] == quote ? i + 1 : i;
    }
  }
  return text.size();
}

// The same for R"delimiter(...)delimiter".
size_t EndOfRawLiteral(absl::string_view text, size_t quote) {
  const size_t open = text.find('(', quote);
  if (open == absl::string_view::npos || open - quote > 17) return quote + 1;
  const std::string close =
      absl::StrCat(")", text.substr(quote + 1, open - quote - 1), "\"");
  const size_t end = text.find(close, open);
  return end == absl::string_view::npos ? text.size() : end + close.size();
}

std::string WithoutCommentsAndLiterals(absl::string_view original) {
  std::string text(original);
  size_t i = 0;
  while (i < text.size()) {
    const absl::string_view rest = original.substr(i);
    if (absl::StartsWith(rest, "//")) {
      size_t end = i;
      while (end < text.size() && !(text[end] == '\n' && text[end - 1] != '\\'))
        ++end;
      Blank(text, i, end);
      i = end;
    } else if (absl::StartsWith(rest, "/*")) {
      const size_t close = original.find("*/", i + 2);
      const size_t end =
          close == absl::string_view::npos ? text.size() : close + 2;
      Blank(text, i, end);
      i = end;
    } else if (text[i] == '"' || text[i] == '\'') {
      // 1'000 has no character literal.
      const bool separator =
          text[i] == '\'' && i > 0 && absl::ascii_isxdigit(text[i - 1]);
      const bool raw = text[i] == '"' && i > 0 && text[i - 1] == 'R';
      const size_t end = separator ? i + 1
                         : raw     ? EndOfRawLiteral(original, i)
                                   : EndOfLiteral(original, i);
      // A literal that is not closed ends with its line.
      const bool closed = end > i + 1 && text[end - 1] == text[i];
      Blank(text, i + 1, closed ? end - 1 : end);
      i = end;
    } else {
      ++i;
    }
  }
  return text;
}

// The name of the directive in a line, such as "if", and what follows; an empty
// name if it is none.
std::pair<absl::string_view, absl::string_view> Directive(
    absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "#")) return {};
  line = absl::StripLeadingAsciiWhitespace(line);
  size_t size = 0;
  while (size < line.size() && IsWord(line[size])) ++size;
  return {line.substr(0, size), absl::StripAsciiWhitespace(line.substr(size))};
}

// Calls f(begin, end) for each line, together with those that continue it.
template <typename F>
void ForEachLine(absl::string_view text, const F& f) {
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = begin;
    for (;;) {
      end = text.find('\n', end);
      if (end == absl::string_view::npos) end = text.size();
      absl::string_view line = text.substr(begin, end - begin);
      absl::ConsumeSuffix(&line, "\r");
      if (end == text.size() || !absl::EndsWith(line, "\\")) break;
      ++end;
    }
    f(begin, end);
    begin = end + 1;
  }
}

// Blanks what `#if 0` and the `#else` of `#if 1` exclude.
void BlankExcluded(std::string& text) {
  // Of each open #if: whether its current part is excluded, and whether its
  // condition is a literal.
  struct Part {
    bool excluded;
    bool literal;
  };
  std::vector<Part> open;
  const std::string copy = text;
  ForEachLine(copy, [&](size_t begin, size_t end) {
    const auto [name, rest] =
        Directive(absl::string_view(copy).substr(begin, end - begin));
    if (absl::StartsWith(name, "if")) {
      const bool literal = name == "if" && (rest == "0" || rest == "1" ||
                                            rest == "false" || rest == "true");
      open.push_back({literal && (rest == "0" || rest == "false"), literal});
    } else if (!open.empty() && name == "else") {
      if (open.back().literal) open.back().excluded = !open.back().excluded;
    } else if (!open.empty() && name == "elif") {
      open.back() = {false, false};
    } else if (!open.empty() && name == "endif") {
      open.pop_back();
    } else if (std::any_of(open.begin(), open.end(),
                           [](const Part& part) { return part.excluded; })) {
      Blank(text, begin, end);
    }
  });
}

struct Token {
  absl::string_view text;
  size_t offset;
};

std::vector<Token> Tokenize(absl::string_view text) {
  std::vector<Token> tokens;
  size_t i = 0;
  while (i < text.size()) {
    size_t size = 1;
    if (absl::ascii_isspace(text[i])) {
      ++i;
      continue;
    }
    if (IsWord(text[i])) {
      while (i + size < text.size() && IsWord(text[i + size])) ++size;
    } else if (text.substr(i, 2) == "::") {
      size = 2;
    }
    tokens.push_back({text.substr(i, size), i});
    i += size;
  }
  return tokens;
}

// Reads functions from tokens.
class Reader {
 public:
  Reader(absl::string_view text, const std::vector<Token>& tokens)
      : text_(text), tokens_(tokens) {}

  SourceText Read() const {
    SourceText source;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (Is(i, "__global__") ||
          (Is(i, "<") && Is(i + 1, "<") && Is(i + 2, "<") && !Is(i + 3, "<"))) {
        source.launches = true;
      } else if (Is(i, "class") || Is(i, "struct")) {
        if (i + 1 < tokens_.size() && (Is(i + 2, "{") || Is(i + 2, ":"))) {
          source.classes.emplace_back(tokens_[i + 1].text);
        }
      } else if (IsName(i)) {
        Function function;
        if (ReadFunction(i, &function)) {
          source.functions.push_back(std::move(function));
        }
      }
    }
    return source;
  }

 private:
  bool Is(size_t i, absl::string_view text) const {
    return i < tokens_.size() && tokens_[i].text == text;
  }
  bool IsName(size_t i) const {
    return i < tokens_.size() && IsWord(tokens_[i].text[0]) &&
           !absl::ascii_isdigit(tokens_[i].text[0]);
  }

  // The index behind the bracket that closes the one at `open`, or 0.
  size_t Behind(size_t open, absl::string_view left,
                absl::string_view right) const {
    // Longer lists are none, or else a file of brackets takes quadratic time.
    constexpr size_t kMostTokens = 1000;
    int depth = 0;
    for (size_t i = open; i < std::min(tokens_.size(), open + kMostTokens);
         ++i) {
      if (Is(i, left)) ++depth;
      if (Is(i, right) && --depth == 0) return i + 1;
      // No list of parameters or template arguments holds these.
      if (Is(i, ";") || Is(i, "{") || Is(i, "}")) return 0;
    }
    return 0;
  }

  // Adds a token, behind a space where two words would meet.
  static void Append(absl::string_view token, std::string* text) {
    if (!text->empty() && IsWord(text->back()) && IsWord(token[0])) {
      *text += ' ';
    }
    absl::StrAppend(text, token);
  }

  // The text of tokens [begin, end).
  std::string Text(size_t begin, size_t end) const {
    std::string text;
    for (size_t i = begin; i < end; ++i) {
      Append(tokens_[i].text, &text);
    }
    return text;
  }

  Parameter ReadParameter(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) {
      if (Is(i, "=")) end = i;
    }
    Parameter parameter;
    parameter.text = Text(begin, end);
    bool reference = false;
    bool array = false;
    int depth = 0;
    std::vector<absl::string_view> type;
    for (size_t i = begin; i < end; ++i) {
      if (Is(i, "<")) ++depth;
      if (Is(i, ">")) --depth;
      if (depth == 0 && Is(i, "*")) parameter.pointer = true;
      if (Is(i, "&")) reference = true;
      if (Is(i, "[")) {
        parameter.pointer = array = true;
        break;
      }
      if (Is(i, "__restrict__") || Is(i, "__restrict") || Is(i, "restrict")) {
        continue;
      }
      type.push_back(tokens_[i].text);
    }
    if (type.size() > 1 && IsWord(type.back()[0]) && type.back() != "const" &&
        type.back() != "int" && type.back() != "float") {
      parameter.name = std::string(type.back());
      type.pop_back();
    }
    // The const of the parameter itself is not part of the function's type.
    if (!type.empty() && type.back() == "const") type.pop_back();
    if (!parameter.pointer && !reference) {
      type.erase(std::remove(type.begin(), type.end(), "const"), type.end());
    }
    // "float const*" is "const float*".
    if (type.size() > 1 && type[1] == "const") std::swap(type[0], type[1]);
    for (const absl::string_view word : type) Append(word, &parameter.type);
    if (array) parameter.type += '*';
    return parameter;
  }

  // Whether a function's declaration has its name at tokens_[name].
  bool ReadFunction(size_t name, Function* function) const {
    size_t open = name + 1;
    if (Is(open, "<")) {
      open = Behind(open, "<", ">");
      if (open == 0) return false;
      function->template_arguments = Text(name + 2, open - 1);
    }
    if (!Is(open, "(")) return false;
    const size_t close = Behind(open, "(", ")");
    if (close == 0) return false;
    size_t behind = close;
    while (Is(behind, "const") || Is(behind, "noexcept")) ++behind;
    function->definition = Is(behind, "{");
    if (!function->definition && !Is(behind, ";")) return false;

    size_t begin = name;
    if (begin >= 2 && Is(begin - 1, "::") && IsName(begin - 2)) {
      function->scope = std::string(tokens_[begin - 2].text);
      begin -= 2;
    }
    const size_t first = begin;
    while (begin > 0 && !Is(begin - 1, ";") && !Is(begin - 1, "{") &&
           !Is(begin - 1, "}") && !Is(begin - 1, ":")) {
      --begin;
    }
    // A call has nothing before it, or an operator.
    if (begin == first ||
        !(IsName(first - 1) || Is(first - 1, "*") || Is(first - 1, "&") ||
          Is(first - 1, ">") || Is(first - 1, ")"))) {
      return false;
    }
    for (size_t i = begin; i < first; ++i) {
      if (Is(i, "return") || Is(i, "=") || Is(i, "(") || Is(i, "else")) {
        // Attributes such as __launch_bounds__(256) have brackets too.
        if (!Is(i, "(") || i == begin ||
            !absl::StartsWith(tokens_[i - 1].text, "__")) {
          return false;
        }
      }
    }
    function->before = Text(begin, first);
    function->name = std::string(tokens_[name].text);
    function->line = LineOf(text_, tokens_[name].offset);
    ReadParameters(open + 1, close - 1, function);
    return true;
  }

  void ReadParameters(size_t begin, size_t end, Function* function) const {
    int depth = 0;
    size_t first = begin;
    for (size_t i = begin; i < end; ++i) {
      if (Is(i, "<") || Is(i, "(")) ++depth;
      if (Is(i, ">") || Is(i, ")")) --depth;
      if (depth == 0 && Is(i, ",")) {
        function->parameters.push_back(ReadParameter(first, i));
        first = i + 1;
      }
    }
    if (first < end && !(end - first == 1 && Is(first, "void"))) {
      function->parameters.push_back(ReadParameter(first, end));
    }
  }

  absl::string_view text_;
  const std::vector<Token>& tokens_;
};

}  // namespace

std::string WithoutComments(absl::string_view text) {
  std::string stripped = WithoutCommentsAndLiterals(text);
  BlankExcluded(stripped);
  return stripped;
}

int LineOf(absl::string_view text, size_t offset) {
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + offset, '\n'));
}

std::vector<Include> Includes(absl::string_view text) {
  const std::string stripped = WithoutComments(text);
  std::vector<Include> includes;
  ForEachLine(stripped, [&](size_t begin, size_t end) {
    const auto [name, rest] =
        Directive(absl::string_view(stripped).substr(begin, end - begin));
    if (name != "include" || rest.empty()) return;
    const size_t open = rest.data() - stripped.data();
    const bool quoted = rest[0] == '"';
    if (!quoted && rest[0] != '<') return;
    // The name between the quotes was blanked.
    const size_t close = text.find(quoted ? '"' : '>', open + 1);
    if (close == absl::string_view::npos || close > end) return;
    includes.push_back({std::string(text.substr(open + 1, close - open - 1)),
                        quoted, LineOf(stripped, begin)});
  });
  return includes;
}

bool SourceText::HasClass(absl::string_view name) const {
  return std::find(classes.begin(), classes.end(), name) != classes.end();
}

SourceText ReadSource(absl::string_view text) {
  std::string stripped = WithoutComments(text);
  const std::string copy = stripped;
  ForEachLine(copy, [&](size_t begin, size_t end) {
    const absl::string_view line =
        absl::string_view(copy).substr(begin, end - begin);
    if (!Directive(line).first.empty()) Blank(stripped, begin, end);
  });
  const std::vector<Token> tokens = Tokenize(stripped);
  return Reader(stripped, tokens).Read();
}

}  // namespace convlab
