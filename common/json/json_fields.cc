#include "common/json/json_fields.h"

#include <cmath>

namespace convlab {
namespace json_fields {
namespace {

absl::Status WrongType(const ParsedJson& json, const std::string& where,
                       absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, " is ", json.type_name(), ", expected ", expected));
}

absl::Status CheckSize(const std::string& where, size_t size, size_t most,
                       absl::string_view unit) {
  if (size <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      where, " has ", size, " ", unit, ", expected at most ", most));
}

template <typename Min, typename Max>
absl::Status OutOfRange(const ParsedJson& json, const std::string& where,
                        Min min, Max max) {
  return absl::InvalidArgumentError(absl::StrCat(
      where, " is ", json.dump(), ", expected ", min, " to ", max));
}

// Finds the place where JSON is malformed.
struct ErrorFinder : nlohmann::json_sax<ParsedJson> {
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&,
                   const ParsedJson::exception&) override {
    byte = position;
    return false;
  }
  size_t byte = 0;
};

// The first byte that is nested more deeply than kDeepestNesting, or npos.
size_t FindDeepNesting(absl::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestNesting) return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return absl::string_view::npos;
}

}  // namespace

Json ToJson(bool value) { return value; }
Json ToJson(int64_t value) { return value; }
Json ToJson(uint64_t value) { return value; }
Json ToJson(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}
Json ToJson(const std::string& value) { return value; }

absl::Status FromJson(const ParsedJson& json, const std::string& where,
                      bool& value) {
  if (!json.is_boolean()) return WrongType(json, where, "true or false");
  value = json.get<bool>();
  return absl::OkStatus();
}

absl::Status FromJson(const ParsedJson& json, const std::string& where,
                      int64_t min, int64_t max, int64_t& value) {
  if (!json.is_number_integer()) return WrongType(json, where, "an integer");
  // An integer that is not negative is kept as an unsigned one.
  const bool fits = json.is_number_unsigned()
                        ? json.get<uint64_t>() <= static_cast<uint64_t>(max)
                        : json.get<int64_t>() >= min;
  if (!fits) return OutOfRange(json, where, min, max);
  value = json.get<int64_t>();
  return absl::OkStatus();
}

absl::Status FromJson(const ParsedJson& json, const std::string& where,
                      uint64_t max, uint64_t& value) {
  if (!json.is_number_integer()) return WrongType(json, where, "an integer");
  const bool fits = json.is_number_unsigned() ? json.get<uint64_t>() <= max
                                              : json.get<int64_t>() >= 0;
  if (!fits) return OutOfRange(json, where, 0, max);
  value = json.get<uint64_t>();
  return absl::OkStatus();
}

absl::Status FromJson(const ParsedJson& json, const std::string& where,
                      double& value) {
  if (!json.is_number()) return WrongType(json, where, "a number");
  value = json.get<double>();
  return absl::OkStatus();
}

absl::Status FromJson(const ParsedJson& json, const std::string& where,
                      std::string& value) {
  if (!json.is_string()) return WrongType(json, where, "a string");
  value = json.get_ref<const std::string&>();
  return CheckSize(where, value.size(), kLongestText, "bytes");
}

absl::Status CheckArray(const ParsedJson& json, const std::string& where) {
  if (!json.is_array()) return WrongType(json, where, "an array");
  return CheckSize(where, json.size(), kLongestArray, "elements");
}

absl::Status CheckObject(const ParsedJson& json, const std::string& where) {
  if (!json.is_object()) return WrongType(json, where, "an object");
  return CheckSize(where, json.size(), kLongestArray, "elements");
}

void Writer::Set(const char* name, Json encoded) {
  if (!encoded.is_null()) json_[name] = std::move(encoded);
}

const ParsedJson* Reader::Find(const char* name) const {
  if (!status_.ok()) return nullptr;
  const auto found = json_.find(name);
  return found == json_.end() ? nullptr : &*found;
}

std::string Reader::WhereIs(const char* name) const {
  return absl::StrCat(where_, ".", name);
}

absl::StatusOr<ParsedJson> Parse(absl::string_view what,
                                 absl::string_view text) {
  if (const size_t deep = FindDeepNesting(text);
      deep != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a ", what, ": nested more than ", kDeepestNesting,
                     " deep at byte ", deep));
  }
  ParsedJson parsed = ParsedJson::parse(text.begin(), text.end(), nullptr,
                                        /*allow_exceptions=*/false);
  if (!parsed.is_discarded()) return parsed;
  ErrorFinder finder;
  ParsedJson::sax_parse(text.begin(), text.end(), &finder);
  return absl::InvalidArgumentError(
      absl::StrCat("not a ", what, ": not valid JSON at byte ", finder.byte));
}

std::string Print(const char* schema, const Json& record) {
  Json json = {{"schema", schema}};
  json.update(record);
  // Command lines and paths may hold bytes that are not UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<ParsedJson> ParseRecord(absl::string_view what,
                                       const char* schema,
                                       absl::string_view text) {
  if (text.size() > kLargestRecord) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a ", what, ": ", text.size(),
                     " bytes, expected at most ", kLargestRecord));
  }
  ASSIGN_OR_RETURN(ParsedJson parsed, Parse(what, text));
  const auto found = parsed.find("schema");
  if (!parsed.is_object() || found == parsed.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a ", what, ": it has no field \"schema\""));
  }
  if (*found != schema) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unknown schema ", found->dump(), ", expected \"", schema, "\""));
  }
  return parsed;
}

}  // namespace json_fields
}  // namespace convlab
