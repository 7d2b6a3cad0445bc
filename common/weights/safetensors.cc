#include "common/weights/safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "Eigen/Core"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "common/weights/byte_reader.h"
#include "nlohmann/json.hpp"

namespace convlab {
namespace {

using Json = nlohmann::json;

constexpr char kMetadata[] = "__metadata__";
constexpr uint64_t kLongestHeader = 1 << 20;
// header -> tensor -> shape
constexpr int kDeepest = 3;

// A tensor's entry in the header, with the place of its bytes in the data.
struct Entry {
  std::string name;
  DataType type;
  std::vector<int64_t> shape;
  uint64_t begin;
  uint64_t end;
};

int64_t BytesPerValue(DataType type) {
  return type == DataType::kFloat32 ? 4 : 2;
}

const char* TypeName(DataType type) {
  return type == DataType::kFloat32 ? "F32" : "F16";
}

// Parses the header's JSON: an object without duplicate keys, nested no deeper
// than the format.
absl::StatusOr<Json> ParseHeader(absl::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  absl::Status status;
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    switch (event) {
      case Json::parse_event_t::object_start:
        keys.emplace_back();
        break;
      case Json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case Json::parse_event_t::key: {
        const auto& key = value.get_ref<const std::string&>();
        if (!keys.back().insert(key).second && status.ok()) {
          status = absl::InvalidArgumentError(
              absl::StrCat("the header has ", Quoted(key), " twice"));
        }
        break;
      }
      default:
        break;
    }
    const bool deep = depth >= kDeepest;
    if (deep && status.ok() &&
        (event == Json::parse_event_t::object_start ||
         event == Json::parse_event_t::array_start)) {
      status = absl::InvalidArgumentError("the header is nested too deep");
    }
    return status.ok();
  };
  Json header = Json::parse(text.begin(), text.end(), check,
                            /*allow_exceptions=*/false);
  RETURN_IF_ERROR(status);
  if (!header.is_object()) {
    return absl::InvalidArgumentError(
        "the header is not a JSON object, or is damaged");
  }
  return header;
}

// Returns the member `key` of `object` as a list of non-negative integers.
absl::StatusOr<std::vector<int64_t>> IntegerList(const Json& object,
                                                 const char* key) {
  const auto found = object.find(key);
  const auto* list =
      found == object.end() ? nullptr : found->get_ptr<const Json::array_t*>();
  if (list == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, " is missing or not a list"));
  }
  std::vector<int64_t> values;
  for (const Json& element : *list) {
    const auto* value = element.get_ptr<const uint64_t*>();
    if (value == nullptr || *value > uint64_t{INT64_MAX}) {
      return absl::InvalidArgumentError(absl::StrCat(
          key, " element ", values.size(), " is not a non-negative integer"));
    }
    values.push_back(static_cast<int64_t>(*value));
  }
  return values;
}

absl::StatusOr<Entry> ParseEntry(const std::string& name, const Json& json) {
  if (!json.is_object()) {
    return absl::InvalidArgumentError("the header's entry is not an object");
  }
  Entry entry;
  entry.name = name;
  const auto found = json.find("dtype");
  const auto* dtype =
      found == json.end() ? nullptr : found->get_ptr<const std::string*>();
  if (dtype == nullptr) {
    return absl::InvalidArgumentError("dtype is missing or not a string");
  }
  if (*dtype == "F32") {
    entry.type = DataType::kFloat32;
  } else if (*dtype == "F16") {
    entry.type = DataType::kFloat16;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype ", Quoted(*dtype), ", expected F32 or F16"));
  }
  ASSIGN_OR_RETURN(entry.shape, IntegerList(json, "shape"));
  ASSIGN_OR_RETURN(const auto offsets, IntegerList(json, "data_offsets"));
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    return absl::InvalidArgumentError(
        absl::StrCat("data_offsets ", ShapeString(offsets),
                     ", expected a begin and an end behind it"));
  }
  entry.begin = offsets[0];
  entry.end = offsets[1];
  ASSIGN_OR_RETURN(const int64_t count, ElementCount(entry.shape));
  // Divided, because the product might overflow.
  const uint64_t size = entry.end - entry.begin;
  const uint64_t width = BytesPerValue(entry.type);
  if (size % width != 0 || size / width != static_cast<uint64_t>(count)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data_offsets ", ShapeString(offsets), " span ", size, " bytes, but ",
        *dtype, " of shape ", ShapeString(entry.shape), " is ", count,
        " values of ", width));
  }
  return entry;
}

absl::StatusOr<std::map<std::string, std::string>> ParseMetadata(
    const Json& json) {
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kMetadata, " is not an object"));
  }
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : json.items()) {
    const auto* text = value.get_ptr<const std::string*>();
    if (text == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(kMetadata, " ", Quoted(key), " is not a string"));
    }
    metadata[key] = *text;
  }
  return metadata;
}

// Checks that `entries`, sorted by place, cover `size` bytes of data without
// overlap or gap.
absl::Status CheckPlaces(const std::vector<Entry>& entries, uint64_t size) {
  uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != end) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", Quoted(entry.name), " begins at byte ", entry.begin,
          " of the data, ", entry.begin < end ? "overlapping" : "not next to",
          " the one before it, which ends at ", end));
    }
    end = entry.end;
  }
  if (end != size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the header describes ", end, " bytes of data, the file holds ", size));
  }
  return absl::OkStatus();
}

std::vector<float> Expand(absl::string_view bytes, DataType type) {
  const size_t count = bytes.size() / BytesPerValue(type);
  std::vector<float> values(count);
  if (count == 0) return values;
  if (type == DataType::kFloat32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  for (size_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + i * sizeof(bits), sizeof(bits));
    values[i] = static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(bits));
  }
  return values;
}

// Appends the values as `tensor.type` stores them.
absl::Status AppendValues(const Tensor& tensor, std::string& data) {
  if (tensor.type == DataType::kFloat32) {
    data.append(reinterpret_cast<const char*>(tensor.values.data()),
                tensor.values.size() * sizeof(float));
    return absl::OkStatus();
  }
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    const float value = tensor.values[i];
    const Eigen::half half(value);
    if (std::isfinite(value) && !Eigen::numext::isfinite(half)) {
      return absl::InvalidArgumentError(
          absl::StrCat("value ", value, " at index ", i,
                       " is beyond the largest F16, 65504"));
    }
    const auto bits = Eigen::numext::bit_cast<uint16_t>(half);
    data.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
  }
  return absl::OkStatus();
}

// Writes JSON as text, with U+FFFD for bytes that are not UTF-8.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool IsUtf8(const std::string& text) {
  return Json::parse(Dump(text), nullptr, false) == Json(text);
}

}  // namespace

absl::StatusOr<TensorFile> ParseSafetensors(absl::string_view content) {
  ByteReader reader(content);
  ASSIGN_OR_RETURN(const uint64_t length,
                   reader.Integer<uint64_t>("the header's length"));
  if (length > kLongestHeader) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header's length is ", length,
                     " bytes, expected at most ", kLongestHeader));
  }
  ASSIGN_OR_RETURN(const absl::string_view text,
                   reader.Bytes(length, "the header"));
  ASSIGN_OR_RETURN(const Json header, ParseHeader(text));

  TensorFile file;
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadata) {
      ASSIGN_OR_RETURN(file.metadata, ParseMetadata(json));
      continue;
    }
    absl::StatusOr<Entry> entry = ParseEntry(name, json);
    RETURN_IF_ERROR(
        Annotate(entry.status(), absl::StrCat("tensor ", Quoted(name))));
    entries.push_back(*std::move(entry));
  }
  // Tensors without elements share their place with the next one.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) {
                     return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
                   });
  RETURN_IF_ERROR(CheckPlaces(entries, reader.left()));
  const absl::string_view data = content.substr(reader.offset());
  for (Entry& entry : entries) {
    std::vector<float> values =
        Expand(data.substr(entry.begin, entry.end - entry.begin), entry.type);
    file.tensors.push_back({std::move(entry.name), entry.type,
                            std::move(entry.shape), std::move(values)});
  }
  return file;
}

absl::StatusOr<std::string> SerializeSafetensors(const TensorFile& file) {
  Json header = Json::object();
  if (!file.metadata.empty()) {
    Json& metadata = header[kMetadata] = Json::object();
    for (const auto& [key, value] : file.metadata) {
      if (!IsUtf8(key) || !IsUtf8(value)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "metadata ", Quoted(key), " = ", Quoted(value), " is not UTF-8"));
      }
      metadata[key] = value;
    }
  }
  std::set<std::string> names = {kMetadata};
  std::string data;
  for (const Tensor& tensor : file.tensors) {
    const std::string where = absl::StrCat("tensor ", Quoted(tensor.name));
    if (!IsUtf8(tensor.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": the name is not UTF-8"));
    }
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": the name is taken"));
    }
    const absl::StatusOr<int64_t> count = ElementCount(tensor.shape);
    RETURN_IF_ERROR(Annotate(count.status(), where));
    if (*count != static_cast<int64_t>(tensor.values.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": ", tensor.values.size(), " values, but shape ",
                       ShapeString(tensor.shape), " has ", *count));
    }
    const size_t begin = data.size();
    RETURN_IF_ERROR(Annotate(AppendValues(tensor, data), where));
    header[tensor.name] = {{"dtype", TypeName(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, data.size()}}};
  }
  std::string text = Dump(header);
  // Spaces behind the JSON align the data, as the format's own writer does.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kLongestHeader) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header would be ", text.size(),
                     " bytes long, expected at most ", kLongestHeader));
  }
  std::string content;
  for (int i = 0; i < 8; ++i) {
    content.push_back(static_cast<char>(uint64_t{text.size()} >> 8 * i));
  }
  return absl::StrCat(content, text, data);
}

}  // namespace convlab
