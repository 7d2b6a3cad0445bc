#include "common/record/run_record.h"

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/accuracy/accuracy.h"
#include "common/files/files.h"
#include "common/hardware/floor.h"
#include "common/json/json_fields.h"
#include "common/record/machine_fields.h"
#include "common/record/seal.h"
#include "common/record/statistics.h"
#include "common/status/status.h"

namespace convlab {

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
  visit("fused", convolution.fused);
  visit("whole_time_ns", convolution.whole_time_ns);
  visit("threads", convolution.threads);
}

template <typename Visitor>
void Fields(Visitor& visit, KernelRecord& kernel) {
  visit("name", kernel.name);
  visit("interface", kernel.kernel_interface);
  visit("digest", kernel.digest);
  visit("bound", kernel.bound);
}

template <typename Visitor>
void Fields(Visitor& visit, VerificationRecord& verification) {
  visit("outcome", verification.outcome);
  visit("reason", verification.reason);
  visit("relative_error", verification.relative_error);
  visit("accuracy_class", verification.accuracy_class);
  visit("problems_tried", verification.problems_tried);
  visit("problems_right", verification.problems_right);
  visit("judge_version", verification.judge_version);
  visit("protection", verification.protection);
  visit("op_time_counts", verification.op_time_counts);
  visit("op_time_note", verification.op_time_note);
  visit("kernel", verification.kernel);
  visit("quick", verification.quick);
}

template <typename Visitor>
void Fields(Visitor& visit, VariantRecord& variant) {
  visit("backend", variant.backend);
  visit("rung", variant.rung);
  visit("accuracy_class", variant.accuracy_class);
  visit("summary", variant.summary);
  visit("reason", variant.reason);
  visit("track", variant.track);
  visit("detour", variant.detour);
  visit("cpu_target", variant.cpu_target);
  visit("verification", variant.verification);
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
  visit("repetitions_correct", run.repetitions_correct);
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
void Fields(Visitor& visit, Seal& seal) {
  visit("method", seal.method);
  visit("key_id", seal.key_id);
  visit("digest", seal.digest);
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
  visit("cpu_target", record.cpu_target);
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
  visit("repetitions_correct", record.repetitions_correct);
  visit("expected_correct", record.expected_correct);
  visit("count_error", record.count_error);
  visit("load_ns", record.load_ns);
  visit("prepare_ns", record.prepare_ns);
  visit("inference_ns", record.inference_ns);
  visit("usage", record.usage);
  visit("device_memory_peak_bytes", record.device_memory_peak_bytes);
  visit("output", record.output);
  visit("profile", record.profile);
  visit("seal", record.seal);
}

bool IsRight(const VerificationRecord& verification) {
  return verification.outcome == "right" ||
         verification.outcome == "restricted";
}

bool IsContributed(const VariantRecord& variant) {
  return variant.verification && variant.verification->kernel;
}

std::optional<int64_t> ExpectedCorrect(const RunRecord& record) {
  if (record.expected_correct) return record.expected_correct;
  if (record.split == "train") return std::nullopt;
  const auto found =
      record.weights_metadata.find(absl::StrCat("correct_", record.size));
  int64_t expected;
  if (found == record.weights_metadata.end() ||
      !absl::SimpleAtoi(found->second, &expected) || expected < 0 ||
      expected > record.size) {
    return std::nullopt;
  }
  return expected;
}

bool RunRecord::fuses() const {
  return std::any_of(convolutions.begin(), convolutions.end(),
                     [](const ConvolutionRecord& convolution) {
                       return !convolution.fused.empty();
                     });
}

std::string VariantNames(const std::vector<ConvolutionRecord>& convolutions) {
  std::vector<std::string> names;
  names.reserve(convolutions.size());
  for (const ConvolutionRecord& convolution : convolutions) {
    names.push_back(convolution.variant);
  }
  const bool same = std::all_of(
      names.begin(), names.end(),
      [&](const std::string& name) { return name == names.front(); });
  if (same && !names.empty()) return names.front();
  return absl::StrJoin(names, " + ");
}

std::string CpuUse(const RunRecord& record) {
  std::set<int> threads;  // 0: not known
  std::set<std::string> targets;
  bool is_contributed = false;
  for (const auto& [name, variant] : record.variants) {
    is_contributed |= IsContributed(variant);
  }
  const auto add = [&](const std::vector<ConvolutionRecord>& convolutions) {
    for (const ConvolutionRecord& one : convolutions) {
      threads.insert(one.threads.value_or(0));
      const auto found = record.variants.find(one.variant);
      if (found == record.variants.end()) continue;
      targets.insert(found->second.cpu_target);
    }
  };
  add(record.convolutions);
  for (const LadderRun& run : record.ladder) add(run.convolutions);
  targets.erase("");
  const auto text = [](int count) {
    return absl::StrCat(count, count == 1 ? " thread" : " threads");
  };
  if (threads.empty() || *threads.begin() == 0) {
    // Of an older record the vector instructions are known that it could use.
    return absl::StrCat(
        "up to ", text(record.threads),
        is_contributed || record.cpu_target.empty() ? "" : " and ",
        is_contributed ? "" : record.cpu_target);
  }
  std::string used = text(*threads.rbegin());
  if (threads.size() > 1) used = absl::StrCat(*threads.begin(), " to ", used);
  if (targets.empty()) return used;
  return absl::StrCat(used, ", ", absl::StrJoin(targets, " and "));
}

double OpTimeSum(const std::vector<ConvolutionRecord>& convolutions) {
  double sum = 0;
  for (const ConvolutionRecord& convolution : convolutions) {
    sum += Median(convolution.op_time_ns);
  }
  return sum;
}

std::optional<double> FloorNs(const RunRecord& record,
                              const ConvolutionRecord& convolution) {
  const std::optional<Rates> rates = DataSheetRates(record.gpu.name);
  const auto variant = record.variants.find(convolution.variant);
  if (!rates || variant == record.variants.end()) return std::nullopt;
  const std::optional<AccuracyClass> accuracy =
      FindAccuracyClass(variant->second.accuracy_class);
  if (!accuracy) return std::nullopt;
  return FloorNs(convolution.flops, convolution.min_bytes, *accuracy, *rates);
}

std::optional<double> FloorNs(
    const RunRecord& record,
    const std::vector<ConvolutionRecord>& convolutions) {
  double sum = 0;
  for (const ConvolutionRecord& convolution : convolutions) {
    const std::optional<double> floor = FloorNs(record, convolution);
    if (!floor) return std::nullopt;
    sum += *floor;
  }
  return sum;
}

std::string ToJson(const RunRecord& record) {
  return ToJsonText(kRunRecordSchema, record);
}

absl::StatusOr<RunRecord> ParseRunRecord(absl::string_view json) {
  ASSIGN_OR_RETURN(RunRecord record, ParseJsonText<RunRecord>(
                                         "run record", kRunRecordSchema, json));
  RETURN_IF_ERROR(CheckValues(record));
  return record;
}

absl::Status WriteRunRecord(const std::string& path, const RunRecord& record) {
  ASSIGN_OR_RETURN(const std::string key, ReadSealKey(""));
  RunRecord sealed = record;
  sealed.seal.reset();
  ASSIGN_OR_RETURN(sealed.seal, MakeSeal(ToJson(sealed), key));
  return WriteFileAtomically(path, ToJson(sealed));
}

absl::StatusOr<RunRecord> ReadRunRecord(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  auto record = ParseRunRecord(content);
  if (!record.ok()) return Annotate(record.status(), path);
  return record;
}

}  // namespace convlab
