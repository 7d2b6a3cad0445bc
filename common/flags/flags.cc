#include "common/flags/flags.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status/status.h"
#include "gflags/gflags.h"

namespace convlab {
namespace {

bool FindFlag(const std::string& name, absl::string_view source_file,
              gflags::CommandLineFlagInfo* info) {
  // gflags itself and libraries define flags too, which are not offered.
  return gflags::GetCommandLineFlagInfo(name.c_str(), info) &&
         info->filename == source_file;
}

// Describes the values of the flag's type.
std::string TypeName(const std::string& type) {
  if (type == "string") return "text";
  if (type == "bool") return "true or false";
  if (type == "double") return "a number";
  return "a whole number";
}

bool IsFlag(absl::string_view argument) {
  return argument.size() > 1 && argument[0] == '-' &&
         !absl::ascii_isdigit(argument[1]);
}

}  // namespace

absl::StatusOr<ParsedFlags> ParseFlags(
    const std::vector<std::string>& args, absl::string_view source_file,
    const std::set<std::string>& repeatable) {
  ParsedFlags parsed;
  std::map<std::string, std::string> values;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!IsFlag(args[i])) {
      parsed.positional.push_back(args[i]);
      continue;
    }
    if (args[i] == "--") {
      parsed.positional.insert(parsed.positional.end(), args.begin() + i + 1,
                               args.end());
      break;
    }
    absl::string_view text = args[i];
    absl::ConsumePrefix(&text, "-");
    absl::ConsumePrefix(&text, "-");
    const size_t equals = text.find('=');
    std::string name(text.substr(0, equals));
    if (equals == absl::string_view::npos && (name == "help" || name == "h")) {
      parsed.help = true;
      continue;
    }
    gflags::CommandLineFlagInfo info;
    std::string value;
    if (FindFlag(name, source_file, &info)) {
      if (equals != absl::string_view::npos) {
        value = std::string(text.substr(equals + 1));
      } else if (info.type == "bool") {
        value = "true";
      } else if (i + 1 < args.size() && !IsFlag(args[i + 1])) {
        value = args[++i];
      } else {
        return absl::InvalidArgumentError(absl::StrCat(
            "flag --", name, " needs a value, ", TypeName(info.type)));
      }
    } else if (equals == absl::string_view::npos &&
               absl::StartsWith(name, "no") &&
               FindFlag(name.substr(2), source_file, &info) &&
               info.type == "bool") {
      name = name.substr(2);
      value = "false";
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag ", args[i], "; --help lists them"));
    }
    // In a script, "--out=$file" with an unset variable does not mean "no
    // file".
    if (info.type == "string" && value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", name, " is empty, expected a value or no such flag"));
    }
    if (gflags::SetCommandLineOption(name.c_str(), value.c_str()).empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", name, " is '", value, "', expected ", TypeName(info.type)));
    }
    // gflags' own spelling, in which 3 and 03 are the same.
    gflags::GetCommandLineOption(name.c_str(), &value);
    parsed.given.insert(name);
    if (repeatable.count(name) > 0) {
      parsed.repeated[name].push_back(value);
      continue;
    }
    const auto [first, is_first] = values.emplace(name, value);
    if (!is_first && first->second != value) {
      return absl::InvalidArgumentError(
          absl::StrCat("both --", name, "=", first->second, " and --", name,
                       "=", value, " are given, expected one"));
    }
  }
  return parsed;
}

std::string WrapText(absl::string_view text, size_t column, size_t indent) {
  constexpr size_t kWidth = 80;
  std::string wrapped;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (column + 1 + word.size() > kWidth && column > indent) {
      absl::StrAppend(&wrapped, "\n", std::string(indent, ' '));
      column = indent;
    } else if (!wrapped.empty()) {
      wrapped += ' ';
      ++column;
    }
    absl::StrAppend(&wrapped, word);
    column += word.size();
  }
  return wrapped;
}

std::string DescribeFlags(absl::string_view source_file,
                          const std::set<std::string>& without) {
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  std::vector<std::pair<std::string, std::string>> lines;  // head, description
  size_t widest = 0;
  for (const gflags::CommandLineFlagInfo& flag : flags) {
    if (flag.filename != source_file || without.count(flag.name) > 0) continue;
    const char* const value = flag.type == "bool"     ? ""
                              : flag.type == "string" ? " TEXT"
                                                      : " N";
    std::string description = flag.description;
    // An empty text and 0 stand for "not given", which the description
    // explains.
    if (flag.type != "bool" && !flag.default_value.empty() &&
        flag.default_value != "0") {
      absl::StrAppend(&description, " (default ", flag.default_value, ")");
    }
    lines.emplace_back(absl::StrCat("  --", flag.name, value), description);
    widest = std::max(widest, lines.back().first.size());
  }
  std::string text;
  const size_t indent = widest + 2;
  for (const auto& [head, description] : lines) {
    absl::StrAppend(&text, head, std::string(indent - head.size(), ' '),
                    WrapText(description, indent, indent), "\n");
  }
  return text;
}

}  // namespace convlab
