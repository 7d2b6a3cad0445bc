#include "common/record/run_record.h"

#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "nlohmann/json.hpp"

namespace convlab {
namespace {

using Json = nlohmann::ordered_json;

// The fields of each struct are listed once, in a Fields function, and visited
// both ways: Writer makes JSON of them, Reader fills them from it.
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

class Reader {
 public:
  Reader(const Json& json, std::string where)
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
  static absl::Status Decode(const Json& json, const std::string& where,
                             T& value);

 private:
  const Json& json_;
  const std::string where_;
  absl::Status status_;
};

template <typename Visitor>
void Fields(Visitor& visit, HostFacts& host) {
  visit("cpu", host.cpu);
  visit("cores", host.cores);
  visit("memory_bytes", host.memory_bytes);
  visit("operating_system", host.operating_system);
  visit("kernel", host.kernel);
}

template <typename Visitor>
void Fields(Visitor& visit, GpuFacts& gpu) {
  visit("name", gpu.name);
  visit("compute_capability", gpu.compute_capability);
  visit("multiprocessors", gpu.multiprocessors);
  visit("memory_bytes", gpu.memory_bytes);
  visit("driver_version", gpu.driver_version);
  visit("runtime_version", gpu.runtime_version);
  visit("multiprocessor_clock_khz", gpu.multiprocessor_clock_khz);
  visit("memory_clock_khz", gpu.memory_clock_khz);
  visit("libraries", gpu.libraries);
}

template <typename Visitor>
void Fields(Visitor& visit, ResourceUsage& usage) {
  visit("user_ns", usage.user_ns);
  visit("system_ns", usage.system_ns);
  visit("elapsed_ns", usage.elapsed_ns);
  visit("max_resident_bytes", usage.max_resident_bytes);
}

template <typename Visitor>
void Fields(Visitor& visit, ConvolutionRecord& convolution) {
  visit("batch", convolution.batch);
  visit("channels", convolution.channels);
  visit("height", convolution.height);
  visit("width", convolution.width);
  visit("filters", convolution.filters);
  visit("kernel_size", convolution.kernel_size);
  visit("flops", convolution.flops);
  visit("min_bytes", convolution.min_bytes);
  visit("variant", convolution.variant);
  visit("op_time_ns", convolution.op_time_ns);
  visit("kernel_time_ns", convolution.kernel_time_ns);
}

template <typename Visitor>
void Fields(Visitor& visit, VariantRecord& variant) {
  visit("backend", variant.backend);
  visit("rung", variant.rung);
  visit("accuracy_class", variant.accuracy_class);
  visit("summary", variant.summary);
  visit("reason", variant.reason);
}

template <typename Visitor>
void Fields(Visitor& visit, LadderRun& run) {
  visit("variant", run.variant);
  visit("failure", run.failure);
  visit("relative_error", run.relative_error);
  visit("convolutions", run.convolutions);
  visit("correct", run.correct);
  visit("inference_ns", run.inference_ns);
  visit("slice", run.slice);
  visit("device_memory_peak_bytes", run.device_memory_peak_bytes);
}

template <typename Visitor>
void Fields(Visitor& visit, PeerRecord& peer) {
  visit("layer", peer.layer);
  visit("library", peer.library);
  visit("algorithm", peer.algorithm);
  visit("accuracy_class", peer.accuracy_class);
  visit("relative_error", peer.relative_error);
  visit("plans", peer.plans);
  visit("kernel_time_ns", peer.kernel_time_ns);
}

template <typename Visitor>
void Fields(Visitor& visit, OverlapRecord& overlap) {
  visit("layer", overlap.layer);
  visit("images", overlap.images);
  visit("slices", overlap.slices);
  visit("serial_ns", overlap.serial_ns);
  visit("overlapped_ns", overlap.overlapped_ns);
}

template <typename Visitor>
void Fields(Visitor& visit, ProfileEntry& entry) {
  visit("name", entry.name);
  visit("calls", entry.calls);
  visit("total_ns", entry.total_ns);
  visit("average_ns", entry.average_ns);
  visit("min_ns", entry.min_ns);
  visit("max_ns", entry.max_ns);
  visit("bytes", entry.bytes);
  visit("printed_share", entry.printed_share);
}

template <typename Visitor>
void Fields(Visitor& visit, ProfileSection& section) {
  visit("entries", section.entries);
  visit("missing", section.missing);
}

template <typename Visitor>
void Fields(Visitor& visit, Counter& counter) {
  visit("name", counter.name);
  visit("unit", counter.unit);
  visit("value", counter.value);
}

template <typename Visitor>
void Fields(Visitor& visit, LaunchCounters& launch) {
  visit("kernel", launch.kernel);
  visit("grid", launch.grid);
  visit("block", launch.block);
  visit("counters", launch.counters);
}

template <typename Visitor>
void Fields(Visitor& visit, Profile& profile) {
  visit("tool", profile.tool);
  visit("version", profile.version);
  visit("gpu_activities", profile.gpu_activities);
  visit("api_calls", profile.api_calls);
  visit("launches", profile.launches);
}

template <typename Visitor>
void Fields(Visitor& visit, RunRecord& record) {
  visit("milestone", record.milestone);
  visit("command", record.command);
  visit("network", record.network);
  visit("model", record.model);
  visit("split", record.split);
  visit("size", record.size);
  visit("slice", record.slice);
  visit("device", record.device);
  visit("threads", record.threads);
  visit("git_revision", record.git_revision);
  visit("build_mode", record.build_mode);
  visit("started", record.started);
  visit("host", record.host);
  visit("gpu", record.gpu);
  visit("weights", record.weights);
  visit("weights_metadata", record.weights_metadata);
  visit("convolutions", record.convolutions);
  visit("variants", record.variants);
  visit("ladder", record.ladder);
  visit("peers", record.peers);
  visit("overlaps", record.overlaps);
  visit("correct", record.correct);
  visit("load_ns", record.load_ns);
  visit("inference_ns", record.inference_ns);
  visit("usage", record.usage);
  visit("device_memory_peak_bytes", record.device_memory_peak_bytes);
  visit("output", record.output);
  visit("profile", record.profile);
}

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
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
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
absl::Status Reader::Decode(const Json& json, const std::string& where,
                            T& value) {
  const auto wrong_type = [&](absl::string_view expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, " is ", json.type_name(), ", expected ", expected));
  };
  if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) return wrong_type("a string");
    value = json.get<std::string>();
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
    value.assign(json.size(), {});
    for (size_t i = 0; i < value.size(); ++i) {
      RETURN_IF_ERROR(
          Decode(json[i], absl::StrCat(where, "[", i, "]"), value[i]));
    }
  } else if constexpr (IsMap<T>::value) {
    if (!json.is_object()) return wrong_type("an object");
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

// Looks for the place where JSON is broken.
struct ErrorFinder : nlohmann::json_sax<Json> {
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
                   const Json::exception&) override {
    byte = position;
    return false;
  }
  size_t byte = 0;
};

}  // namespace

double OpTimeSum(const std::vector<ConvolutionRecord>& convolutions) {
  double sum = 0;
  for (const ConvolutionRecord& convolution : convolutions) {
    sum += Median(convolution.op_time_ns);
  }
  return sum;
}

std::string ToJson(const RunRecord& record) {
  RunRecord copy = record;  // visitors take fields they could fill
  Json json = {{"schema", kRunRecordSchema}};
  json.update(Writer::Encode(copy));
  // Command lines and paths may hold bytes that are not UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<RunRecord> ParseRunRecord(absl::string_view json) {
  const Json parsed = Json::parse(json.begin(), json.end(), nullptr,
                                  /*allow_exceptions=*/false);
  if (parsed.is_discarded()) {
    ErrorFinder finder;
    Json::sax_parse(json.begin(), json.end(), &finder);
    return absl::InvalidArgumentError(
        absl::StrCat("not a run record: not valid JSON at byte ", finder.byte));
  }
  const auto schema = parsed.find("schema");
  if (!parsed.is_object() || schema == parsed.end()) {
    return absl::InvalidArgumentError(
        "not a run record: it has no field \"schema\"");
  }
  if (*schema != kRunRecordSchema) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown schema ", schema->dump(), ", expected \"",
                     kRunRecordSchema, "\""));
  }
  RunRecord record;
  RETURN_IF_ERROR(Reader::Decode(parsed, "record", record));
  return record;
}

absl::Status WriteRunRecord(const std::string& path, const RunRecord& record) {
  return WriteFileAtomically(path, ToJson(record));
}

absl::StatusOr<RunRecord> ReadRunRecord(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  auto record = ParseRunRecord(content);
  if (!record.ok()) return Annotate(record.status(), path);
  return record;
}

}  // namespace convlab
