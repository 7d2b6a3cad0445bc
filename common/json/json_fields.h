// Conversion of plain structs to and from JSON. A struct's fields are listed
// once, in a function template beside it in namespace convlab:
//
//   template <typename Visitor>
//   void Fields(Visitor& visit, Point& point) {
//     visit("x", point.x);
//     visit("y", point.y);
//   }
//
// Fields may be numbers, texts, other such structs, and vectors, maps by text
// and optionals of all these.
#ifndef COMMON_JSON_JSON_FIELDS_H_
#define COMMON_JSON_JSON_FIELDS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status/status.h"
#include "nlohmann/json.hpp"

namespace convlab {
namespace json_fields {

// What is written: fields keep their order.
using Json = nlohmann::ordered_json;
// What is read, and may be anything: that of ordered_json compares each key of
// an object with all before it.
using ParsedJson = nlohmann::json;

// Limits of what is read, far beyond what any program writes. nlohmann's
// functions recurse into what they are given.
inline constexpr size_t kLongestText = 1 << 16;
inline constexpr size_t kLongestArray = 1000000;
inline constexpr int kDeepestNesting = 64;
// Of a record: parsed values take up to 20 times as much memory.
inline constexpr size_t kLargestRecord = size_t{32} << 20;

// Converts the fields that it visits to JSON.
class Writer {
 public:
  template <typename T>
  void operator()(const char* name, T& field) {
    Json encoded = Encode(field);
    // An absent value is left out.
    if (!encoded.is_null()) json_[name] = std::move(encoded);
  }
  Json Take() { return std::move(json_); }

  template <typename T>
  static Json Encode(T& value);

 private:
  Json json_ = Json::object();
};

// Fills the fields that it visits from JSON.
class Reader {
 public:
  Reader(const ParsedJson& json, std::string where)
      : json_(json), where_(std::move(where)) {}

  template <typename T>
  void operator()(const char* name, T& field) {
    const auto found = json_.find(name);
    if (status_.ok() && found != json_.end()) {
      status_ = Decode(*found, absl::StrCat(where_, ".", name), field);
    }
  }
  absl::Status Take() { return status_; }

  template <typename T>
  static absl::Status Decode(const ParsedJson& json, const std::string& where,
                             T& value);

 private:
  const ParsedJson& json_;
  const std::string where_;
  absl::Status status_;
};

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsMap : std::false_type {};
template <typename T>
struct IsMap<std::map<std::string, T>> : std::true_type {};

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <typename T>
Json Writer::Encode(T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    // JSON has neither NaN nor infinity.
    return std::isfinite(value) ? Json(value) : Json();
  } else if constexpr (std::is_arithmetic_v<T> ||
                       std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (IsVector<T>::value) {
    Json list = Json::array();
    for (auto& element : value) list.push_back(Encode(element));
    return list;
  } else if constexpr (IsMap<T>::value) {
    Json object = Json::object();
    for (auto& [key, element] : value) object[key] = Encode(element);
    return object;
  } else if constexpr (IsOptional<T>::value) {
    return value ? Encode(*value) : Json();
  } else {
    Writer writer;
    Fields(writer, value);
    return writer.Take();
  }
}

template <typename T>
absl::Status Reader::Decode(const ParsedJson& json, const std::string& where,
                            T& value) {
  const auto wrong_type = [&](absl::string_view expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, " is ", json.type_name(), ", expected ", expected));
  };
  [[maybe_unused]] const auto too_long = [&](size_t size,
                                             absl::string_view unit) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, " has ", size, " ", unit, ", expected at most ",
                     unit == "bytes" ? kLongestText : kLongestArray));
  };
  if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) return wrong_type("a string");
    value = json.get<std::string>();
    if (value.size() > kLongestText) return too_long(value.size(), "bytes");
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return wrong_type("true or false");
    value = json.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (!json.is_number_integer()) return wrong_type("an integer");
    const bool fits = json.is_number_unsigned()
                          ? json.get<uint64_t>() <= uint64_t{Limits::max()}
                          : json.get<int64_t>() >= Limits::min();
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " is ", json.dump(), ", expected ", Limits::min(),
                       " to ", Limits::max()));
    }
    value = json.get<T>();
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!json.is_number()) return wrong_type("a number");
    value = json.get<T>();
  } else if constexpr (IsVector<T>::value) {
    if (!json.is_array()) return wrong_type("an array");
    if (json.size() > kLongestArray) return too_long(json.size(), "elements");
    value.assign(json.size(), {});
    for (size_t i = 0; i < value.size(); ++i) {
      RETURN_IF_ERROR(
          Decode(json[i], absl::StrCat(where, "[", i, "]"), value[i]));
    }
  } else if constexpr (IsMap<T>::value) {
    if (!json.is_object()) return wrong_type("an object");
    if (json.size() > kLongestArray) return too_long(json.size(), "elements");
    value.clear();
    for (const auto& [key, element] : json.items()) {
      RETURN_IF_ERROR(
          Decode(element, absl::StrCat(where, ".", key), value[key]));
    }
  } else if constexpr (IsOptional<T>::value) {
    value.reset();
    if (!json.is_null()) return Decode(json, where, value.emplace());
  } else {
    if (!json.is_object()) return wrong_type("an object");
    Reader reader(json, where);
    Fields(reader, value);
    return reader.Take();
  }
  return absl::OkStatus();
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
inline size_t FindDeepNesting(absl::string_view text) {
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

// Parses any JSON. InvalidArgument says at which byte the text is not valid or
// nested too deeply; `what` names the expected content ("run record").
inline absl::StatusOr<ParsedJson> Parse(absl::string_view what,
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

}  // namespace json_fields

// The JSON text of `record` with the field "schema" first.
template <typename T>
std::string ToJsonText(const char* schema, const T& record) {
  T copy = record;  // Fields takes mutable references
  json_fields::Json json = {{"schema", schema}};
  json.update(json_fields::Writer::Encode(copy));
  // Command lines and paths may hold bytes that are not UTF-8.
  using Handler = json_fields::Json::error_handler_t;
  return json.dump(1, ' ', false, Handler::replace) + "\n";
}

// Parses such a text. A missing field keeps its default. InvalidArgument if the
// text is too long, not valid JSON, has another schema, or a field of the wrong
// type;
// `what` names the expected kind of record ("run record").
template <typename T>
absl::StatusOr<T> ParseJsonText(absl::string_view what, const char* schema,
                                absl::string_view text) {
  if (text.size() > json_fields::kLargestRecord) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a ", what, ": ", text.size(),
                     " bytes, expected at most ", json_fields::kLargestRecord));
  }
  ASSIGN_OR_RETURN(const json_fields::ParsedJson parsed,
                   json_fields::Parse(what, text));
  const auto found = parsed.find("schema");
  if (!parsed.is_object() || found == parsed.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a ", what, ": it has no field \"schema\""));
  }
  if (*found != schema) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unknown schema ", found->dump(), ", expected \"", schema, "\""));
  }
  T record;
  RETURN_IF_ERROR(json_fields::Reader::Decode(parsed, "record", record));
  return record;
}

}  // namespace convlab

#endif  // COMMON_JSON_JSON_FIELDS_H_
