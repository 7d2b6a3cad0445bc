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

// A value's JSON; null for NaN and infinity, which JSON does not have.
Json ToJson(bool value);
Json ToJson(int64_t value);
Json ToJson(uint64_t value);
Json ToJson(double value);
Json ToJson(const std::string& value);

// Read a value of one kind. InvalidArgument says that what stands at `where` is
// of another kind, too long, or not from `min` to `max`.
absl::Status FromJson(const ParsedJson& json, const std::string& where,
                      bool& value);
absl::Status FromJson(const ParsedJson& json, const std::string& where,
                      int64_t min, int64_t max, int64_t& value);
absl::Status FromJson(const ParsedJson& json, const std::string& where,
                      uint64_t max, uint64_t& value);
absl::Status FromJson(const ParsedJson& json, const std::string& where,
                      double& value);
absl::Status FromJson(const ParsedJson& json, const std::string& where,
                      std::string& value);
absl::Status CheckArray(const ParsedJson& json, const std::string& where);
absl::Status CheckObject(const ParsedJson& json, const std::string& where);

// Converts the fields that it visits to JSON.
class Writer {
 public:
  template <typename T>
  void operator()(const char* name, T& field) {
    Set(name, Encode(field));
  }
  Json Take() { return std::move(json_); }

  template <typename T>
  static Json Encode(T& value);

 private:
  // An absent value, null, is left out.
  void Set(const char* name, Json encoded);

  Json json_ = Json::object();
};

// Fills the fields that it visits from JSON.
class Reader {
 public:
  Reader(const ParsedJson& json, std::string where)
      : json_(json), where_(std::move(where)) {}

  template <typename T>
  void operator()(const char* name, T& field) {
    const ParsedJson* found = Find(name);
    if (found != nullptr) status_ = Decode(*found, WhereIs(name), field);
  }
  absl::Status Take() { return status_; }

  template <typename T>
  static absl::Status Decode(const ParsedJson& json, const std::string& where,
                             T& value);

 private:
  // Null if there is no such field, or an error has been found before.
  const ParsedJson* Find(const char* name) const;
  std::string WhereIs(const char* name) const;

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

// The functions above stand in for all types of a kind: each use of nlohmann's
// in a template costs the compiler much time.
template <typename T>
Json Writer::Encode(T& value) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string>) {
    return ToJson(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return ToJson(double{value});
  } else if constexpr (std::is_integral_v<T>) {
    using Widest = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    return ToJson(Widest{value});
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
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string>) {
    return FromJson(json, where, value);
  } else if constexpr (std::is_floating_point_v<T>) {
    double number = 0;
    RETURN_IF_ERROR(FromJson(json, where, number));
    value = static_cast<T>(number);
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    using Limits = std::numeric_limits<T>;
    int64_t number = 0;
    RETURN_IF_ERROR(
        FromJson(json, where, Limits::min(), Limits::max(), number));
    value = static_cast<T>(number);
  } else if constexpr (std::is_integral_v<T>) {
    uint64_t number = 0;
    RETURN_IF_ERROR(
        FromJson(json, where, std::numeric_limits<T>::max(), number));
    value = static_cast<T>(number);
  } else if constexpr (IsVector<T>::value) {
    RETURN_IF_ERROR(CheckArray(json, where));
    value.assign(json.size(), {});
    for (size_t i = 0; i < value.size(); ++i) {
      RETURN_IF_ERROR(
          Decode(json[i], absl::StrCat(where, "[", i, "]"), value[i]));
    }
  } else if constexpr (IsMap<T>::value) {
    RETURN_IF_ERROR(CheckObject(json, where));
    value.clear();
    for (const auto& [key, element] :
         json.get_ref<const ParsedJson::object_t&>()) {
      RETURN_IF_ERROR(
          Decode(element, absl::StrCat(where, ".", key), value[key]));
    }
  } else if constexpr (IsOptional<T>::value) {
    value.reset();
    if (!json.is_null()) return Decode(json, where, value.emplace());
  } else {
    RETURN_IF_ERROR(CheckObject(json, where));
    Reader reader(json, where);
    Fields(reader, value);
    return reader.Take();
  }
  return absl::OkStatus();
}

// Parses any JSON. InvalidArgument says at which byte the text is not valid or
// nested too deeply; `what` names the expected content ("run record").
absl::StatusOr<ParsedJson> Parse(absl::string_view what,
                                 absl::string_view text);

// The text of an object with the field "schema" first.
std::string Print(const char* schema, const Json& record);

// Parses a text of at most kLargestRecord bytes with that schema.
absl::StatusOr<ParsedJson> ParseRecord(absl::string_view what,
                                       const char* schema,
                                       absl::string_view text);

}  // namespace json_fields

// The JSON text of `record` with the field "schema" first.
template <typename T>
std::string ToJsonText(const char* schema, const T& record) {
  T copy = record;  // Fields takes mutable references
  return json_fields::Print(schema, json_fields::Writer::Encode(copy));
}

// Parses such a text. A missing field keeps its default. InvalidArgument if the
// text is too long, not valid JSON, has another schema, or a field of the wrong
// type; `what` names the expected kind of record ("run record").
template <typename T>
absl::StatusOr<T> ParseJsonText(absl::string_view what, const char* schema,
                                absl::string_view text) {
  ASSIGN_OR_RETURN(const json_fields::ParsedJson parsed,
                   json_fields::ParseRecord(what, schema, text));
  T record;
  RETURN_IF_ERROR(json_fields::Reader::Decode(parsed, "record", record));
  return record;
}

}  // namespace convlab

#endif  // COMMON_JSON_JSON_FIELDS_H_
