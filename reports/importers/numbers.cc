#include "reports/importers/numbers.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace convlab {
namespace {

// Separators of thousands in locales with either decimal sign: blanks, also
// no-break, thin and narrow no-break ones, and apostrophes.
constexpr absl::string_view kOtherSeparators[] = {
    " ", "\xC2\xA0", "\xE2\x80\x89", "\xE2\x80\xAF", "'", "\xE2\x80\x99"};

bool IsDigit(absl::string_view text, size_t at) {
  return at < text.size() && absl::ascii_isdigit(text[at]);
}

// The length of the separator at the beginning of `text`; 0 if there is none.
size_t SeparatorSize(absl::string_view text) {
  if (absl::StartsWith(text, ".") || absl::StartsWith(text, ",")) return 1;
  for (const absl::string_view separator : kOtherSeparators) {
    if (absl::StartsWith(text, separator)) return separator.size();
  }
  return 0;
}

// The parts of a number: a sign, groups of digits with separators between them,
// an exponent.
struct Parts {
  absl::string_view sign;
  std::vector<absl::string_view> groups;      // at least one
  std::vector<absl::string_view> separators;  // one less
  absl::string_view exponent;                 // "e+06" or empty
  size_t size = 0;                            // of all that, in bytes
};

// The number at the beginning of `text`; no groups if there is none.
Parts TakeApart(absl::string_view text) {
  Parts parts;
  size_t at = 0;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    parts.sign = text.substr(0, 1);
    at = 1;
  }
  while (IsDigit(text, at)) {
    const size_t begin = at;
    while (IsDigit(text, at)) ++at;
    parts.groups.push_back(text.substr(begin, at - begin));
    const size_t separator = SeparatorSize(text.substr(at));
    if (separator == 0 || !IsDigit(text, at + separator)) break;
    parts.separators.push_back(text.substr(at, separator));
    at += separator;
  }
  if (parts.groups.empty()) return parts;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    size_t end = at + 1;
    if (end < text.size() && (text[end] == '-' || text[end] == '+')) ++end;
    if (IsDigit(text, end)) {
      while (IsDigit(text, end)) ++end;
      parts.exponent = text.substr(at, end - at);
      at = end;
    }
  }
  parts.size = at;
  return parts;
}

// The number's value if `decimal` is the decimal sign; nothing if it cannot be.
std::optional<double> Value(const Parts& parts, absl::string_view decimal) {
  const bool has_fraction =
      !parts.separators.empty() && parts.separators.back() == decimal;
  const size_t whole = parts.groups.size() - (has_fraction ? 1 : 0);
  std::string digits = absl::StrCat(parts.sign, parts.groups[0]);
  if (whole > 1 && (parts.groups[0].size() > 3 || parts.groups[0][0] == '0')) {
    return std::nullopt;
  }
  for (size_t i = 1; i < whole; ++i) {
    const absl::string_view separator = parts.separators[i - 1];
    if (separator == decimal || separator != parts.separators[0] ||
        parts.groups[i].size() != 3) {
      return std::nullopt;
    }
    absl::StrAppend(&digits, parts.groups[i]);
  }
  if (has_fraction) absl::StrAppend(&digits, ".", parts.groups.back());
  double value;
  // SimpleAtod takes no plus sign.
  absl::string_view text = digits;
  absl::ConsumePrefix(&text, "+");
  if (!absl::SimpleAtod(absl::StrCat(text, parts.exponent), &value) ||
      !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// The value of a number in each of the two locales.
struct Readings {
  std::optional<double> point, comma;
};

Readings ReadBoth(absl::string_view text) {
  const Parts parts = TakeApart(text);
  if (parts.groups.empty() || parts.size != text.size()) return {};
  return {Value(parts, "."), Value(parts, ",")};
}

}  // namespace

absl::Status NumberReader::Observe(const Cell& number) {
  const Readings readings = ReadBoth(number.text);
  if (!readings.point && !readings.comma) {
    return ErrorAt(
        content_, number.offset,
        absl::StrCat("expected a number, found ", InQuotes(number.text)));
  }
  if (readings.point && readings.comma) return absl::OkStatus();
  const bool decimal_comma = readings.comma.has_value();
  if (!decimal_comma_) {
    decimal_comma_ = decimal_comma;
    witness_ = number;
  } else if (*decimal_comma_ != decimal_comma) {
    return ErrorAt(
        content_, number.offset,
        absl::StrCat(InQuotes(number.text), " has a decimal ",
                     decimal_comma ? "comma" : "point", ", but ",
                     InQuotes(witness_.text), " before it a decimal ",
                     decimal_comma ? "point" : "comma"));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> NumberReader::Read(const Cell& number) const {
  const Readings readings = ReadBoth(number.text);
  if (readings.point && readings.comma && *readings.point != *readings.comma &&
      !decimal_comma_) {
    return ErrorAt(
        content_, number.offset,
        absl::StrCat(InQuotes(number.text), " may be ", *readings.point, " or ",
                     *readings.comma,
                     ", and no other number in the file shows whether points "
                     "or commas are decimal"));
  }
  const std::optional<double> value =
      decimal_comma_.value_or(false) ? readings.comma : readings.point;
  if (!value) {
    return ErrorAt(
        content_, number.offset,
        absl::StrCat("expected a number, found ", InQuotes(number.text)));
  }
  return *value;
}

double NumberReader::LastDigit(const Cell& number) const {
  const Parts parts = TakeApart(number.text);
  const absl::string_view decimal = decimal_comma_.value_or(false) ? "," : ".";
  double digit = 1;
  if (!parts.separators.empty() && parts.separators.back() == decimal) {
    digit = std::pow(10.0, -static_cast<double>(parts.groups.back().size()));
  }
  double scale = 1;
  if (!absl::SimpleAtod(absl::StrCat("1", parts.exponent), &scale))
    return digit;
  return digit * scale;
}

std::pair<Cell, absl::string_view> SplitUnit(const Cell& quantity) {
  absl::string_view text = absl::StripAsciiWhitespace(quantity.text);
  const size_t offset =
      quantity.offset + static_cast<size_t>(text.data() - quantity.text.data());
  const size_t size = TakeApart(text).size;
  return {Cell{std::string(text.substr(0, size)), offset},
          absl::StripAsciiWhitespace(text.substr(size))};
}

std::optional<double> NanosecondsPer(absl::string_view unit) {
  struct Unit {
    absl::string_view name;
    double ns;
  };
  // Both of Unicode's letters for micro.
  constexpr Unit kPrefixes[] = {
      {"n", 1},          {"nano", 1},       {"u", 1e3},
      {"\xC2\xB5", 1e3}, {"\xCE\xBC", 1e3}, {"micro", 1e3},
      {"m", 1e6},        {"milli", 1e6},    {"", 1e9}};
  constexpr absl::string_view kSeconds[] = {"s", "sec", "second", "seconds"};
  for (const Unit& prefix : kPrefixes) {
    for (const absl::string_view second : kSeconds) {
      if (unit == absl::StrCat(prefix.name, second)) return prefix.ns;
    }
  }
  return std::nullopt;
}

bool IsAbsent(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  absl::ConsumePrefix(&text, "(!)");
  text = absl::StripLeadingAsciiWhitespace(text);
  if (text.empty() || text == "-") return true;
  if (!absl::ConsumePrefix(&text, "-")) absl::ConsumePrefix(&text, "+");
  for (const absl::string_view word : {"n/a", "nan", "inf", "nan(ind)"}) {
    if (absl::EqualsIgnoreCase(text, word)) return true;
  }
  return false;
}

}  // namespace convlab
