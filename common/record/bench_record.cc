#include "common/record/bench_record.h"

#include <algorithm>

#include "common/files/files.h"
#include "common/record/json_fields.h"
#include "common/status/status.h"

namespace convlab {

template <typename Visitor>
void Fields(Visitor& visit, Ceilings& ceilings) {
  visit("fill_gbs", ceilings.fill_gbs);
  visit("copy_gbs", ceilings.copy_gbs);
  visit("triad_gbs", ceilings.triad_gbs);
  visit("fp32_tflops", ceilings.fp32_tflops);
  visit("tf32_tflops", ceilings.tf32_tflops);
  visit("fp16_tflops", ceilings.fp16_tflops);
}

template <typename Visitor>
void Fields(Visitor& visit, BenchRow& row) {
  visit("layer", row.layer);
  visit("batch", row.batch);
  visit("channels", row.channels);
  visit("height", row.height);
  visit("width", row.width);
  visit("filters", row.filters);
  visit("kernel_size", row.kernel_size);
  visit("provider", row.provider);
  visit("variant", row.variant);
  visit("class", row.accuracy_class);
  visit("error", row.error);
  visit("median_ms", row.median_ms);
  visit("iqr_ms", row.iqr_ms);
  visit("min_ms", row.min_ms);
  visit("samples", row.samples);
  visit("sm_clock_mhz", row.sm_clock_mhz);
  visit("tflops", row.tflops);
  visit("gbs", row.gbs);
  visit("of_peak", row.of_peak);
  visit("floor_ms", row.floor_ms);
  visit("arguments", row.arguments);
}

template <typename Visitor>
void Fields(Visitor& visit, BenchOmission& omission) {
  visit("layer", omission.layer);
  visit("batch", omission.batch);
  visit("provider", omission.provider);
  visit("variant", omission.variant);
  visit("class", omission.accuracy_class);
  visit("reason", omission.reason);
}

template <typename Visitor>
void Fields(Visitor& visit, BenchRecord& record) {
  visit("command", record.command);
  visit("git_revision", record.git_revision);
  visit("build_mode", record.build_mode);
  visit("started", record.started);
  visit("method", record.method);
  visit("device", record.device);
  visit("threads", record.threads);
  visit("cpu_target", record.cpu_target);
  visit("host", record.host);
  visit("gpu", record.gpu);
  visit("peer", record.peer);
  visit("ceilings", record.ceilings);
  visit("rows", record.rows);
  visit("omissions", record.omissions);
}

std::optional<double> PeerRatio(const BenchRecord& record,
                                const BenchRow& row) {
  std::optional<double> fastest_ms;
  for (const BenchRow& other : record.rows) {
    if (other.provider == "convlab" || other.layer != row.layer ||
        other.batch != row.batch ||
        other.accuracy_class != row.accuracy_class) {
      continue;
    }
    fastest_ms =
        std::min(fastest_ms.value_or(other.median_ms), other.median_ms);
  }
  if (!fastest_ms || row.median_ms <= 0) return std::nullopt;
  return *fastest_ms / row.median_ms;
}

std::string ToJson(const BenchRecord& record) {
  return ToJsonText(kBenchSchema, record);
}

absl::StatusOr<BenchRecord> ParseBenchRecord(absl::string_view json) {
  return ParseJsonText<BenchRecord>("benchmark record", kBenchSchema, json);
}

absl::StatusOr<BenchRecord> ReadBenchRecord(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  auto record = ParseBenchRecord(content);
  if (!record.ok()) return Annotate(record.status(), path);
  return record;
}

}  // namespace convlab
