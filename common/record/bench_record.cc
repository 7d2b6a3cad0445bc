#include "common/record/bench_record.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/json/json_fields.h"
#include "common/record/machine_fields.h"
#include "common/record/value_checker.h"
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
  visit("neighbour_of", row.neighbour_of);
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
  visit("worst_c", row.worst_c);
  visit("allowed_c", row.allowed_c);
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
void Fields(Visitor& visit, FamilyRow& row) {
  visit("family", row.family);
  visit("layer", row.layer);
  visit("c", row.c);
  visit("allowed", row.allowed);
}

template <typename Visitor>
void Fields(Visitor& visit, AccuracyRow& row) {
  visit("provider", row.provider);
  visit("variant", row.variant);
  visit("class", row.accuracy_class);
  visit("families", row.families);
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
  BenchmarkFields(visit, record);
  visit("check_seed", record.check_seed);
  visit("data", record.data);
  visit("peer", record.peer);
  visit("ceilings", record.ceilings);
  visit("rows", record.rows);
  visit("omissions", record.omissions);
  visit("accuracy", record.accuracy);
}

namespace {

// The difference between the row's sizes and the layer's: "H+1 W+1".
std::string Change(const BenchRow& layer, const BenchRow& row) {
  std::string change;
  for (const auto& [name, before, after] :
       {std::tuple("C", layer.channels, row.channels),
        std::tuple("H", layer.height, row.height),
        std::tuple("W", layer.width, row.width),
        std::tuple("M", layer.filters, row.filters),
        std::tuple("K", layer.kernel_size, row.kernel_size)}) {
    if (before == after) continue;
    absl::StrAppend(&change, change.empty() ? "" : " ", name,
                    after > before ? "+" : "", after - before);
  }
  return change;
}

void Check(ValueChecker& check, const std::string& here, const BenchRow& row) {
  constexpr double kDayMs = kDayNs * 1e-6;
  check.Sizes(here, row, 1);
  check.Range(here + "samples", row.samples, 0, INT32_MAX);
  check.Positive(here + "median_ms", row.median_ms, kDayMs);
  check.Positive(here + "floor_ms", row.floor_ms.value_or(1), kDayMs);
  for (const auto& [field, value] :
       {std::pair("error", std::optional<double>(row.error)),
        {"worst_c", row.worst_c},
        {"allowed_c", row.allowed_c},
        {"iqr_ms", row.iqr_ms},
        {"min_ms", row.min_ms},
        {"sm_clock_mhz", row.sm_clock_mhz},
        {"tflops", row.tflops},
        {"gbs", row.gbs},
        {"of_peak", row.of_peak}}) {
    check.NotNegative(here + field, value.value_or(0));
  }
}

}  // namespace

Rates RatesOf(const Ceilings& ceilings) {
  Rates rates;
  for (const std::optional<double>& gbs :
       {ceilings.fill_gbs, ceilings.copy_gbs, ceilings.triad_gbs}) {
    rates.memory_gbs = std::max(rates.memory_gbs, gbs);
  }
  rates.fp32_tflops = ceilings.fp32_tflops;
  rates.tf32_tflops = ceilings.tf32_tflops;
  rates.fp16_tflops = ceilings.fp16_tflops;
  return rates;
}

const BenchRow* FastestRow(const BenchRecord& record, By by,
                           absl::string_view layer, int64_t batch,
                           absl::string_view accuracy_class) {
  const BenchRow* fastest = nullptr;
  for (const BenchRow& row : record.rows) {
    // The row of a contributed kernel is nobody's.
    const bool is_by =
        by == By::kUs ? row.provider == "convlab"
                      : row.provider == "cudnn" || row.provider == "onednn";
    if (!is_by || row.layer != layer || row.batch != batch ||
        row.accuracy_class != accuracy_class) {
      continue;
    }
    if (fastest == nullptr || row.median_ms < fastest->median_ms) {
      fastest = &row;
    }
  }
  return fastest;
}

std::optional<double> PeerRatio(const BenchRecord& record,
                                const BenchRow& row) {
  const BenchRow* const peer = FastestRow(record, By::kLibrary, row.layer,
                                          row.batch, row.accuracy_class);
  if (peer == nullptr || row.median_ms <= 0) return std::nullopt;
  return peer->median_ms / row.median_ms;
}

std::optional<double> FloorShare(const BenchRow& row) {
  if (!row.floor_ms || row.median_ms <= 0) return std::nullopt;
  return *row.floor_ms / row.median_ms;
}

std::vector<Neighbour> Neighbours(const BenchRecord& record) {
  std::vector<Neighbour> neighbours;
  for (const BenchRow& row : record.rows) {
    if (!row.neighbour_of || row.provider != "convlab") continue;
    const bool beaten = std::any_of(
        record.rows.begin(), record.rows.end(), [&](const BenchRow& other) {
          return other.provider == "convlab" && other.layer == row.layer &&
                 other.neighbour_of == row.neighbour_of &&
                 other.accuracy_class == row.accuracy_class &&
                 other.median_ms < row.median_ms;
        });
    const BenchRow* const layer = FastestRow(record, By::kUs, *row.neighbour_of,
                                             row.batch, row.accuracy_class);
    if (beaten || layer == nullptr) continue;
    const std::optional<double> of_layer = FloorShare(*layer);
    const std::optional<double> of_row = FloorShare(row);
    if (!of_layer || !of_row) continue;
    neighbours.push_back(
        {layer, &row, Change(*layer, row), *of_row / *of_layer});
  }
  return neighbours;
}

absl::Status CheckValues(const BenchRecord& record) {
  ValueChecker check;
  check.Machine(record.host, record.gpu);
  const Ceilings& ceilings = record.ceilings;
  // Far above any machine's, in GB/s and in TFLOP/s.
  constexpr double kMostRate = 1e9;
  for (const auto& [field, rate] : {std::pair("fill_gbs", ceilings.fill_gbs),
                                    {"copy_gbs", ceilings.copy_gbs},
                                    {"triad_gbs", ceilings.triad_gbs},
                                    {"fp32_tflops", ceilings.fp32_tflops},
                                    {"tf32_tflops", ceilings.tf32_tflops},
                                    {"fp16_tflops", ceilings.fp16_tflops}}) {
    check.Positive(absl::StrCat("record.ceilings.", field), rate.value_or(1),
                   kMostRate);
  }
  for (size_t i = 0; i < record.rows.size(); ++i) {
    Check(check, absl::StrCat("record.rows[", i, "]."), record.rows[i]);
  }
  for (size_t i = 0; i < record.accuracy.size(); ++i) {
    for (const FamilyRow& row : record.accuracy[i].families) {
      const std::string here = absl::StrCat("record.accuracy[", i,
                                            "].families of ", row.family, ": ");
      check.NotNegative(here + "c", row.c.value_or(0));
      check.NotNegative(here + "allowed", row.allowed);
    }
  }
  return check.Take();
}

std::string ToJson(const BenchRecord& record) {
  return ToJsonText(kBenchSchema, record);
}

absl::StatusOr<BenchRecord> ParseBenchRecord(absl::string_view json) {
  ASSIGN_OR_RETURN(
      BenchRecord record,
      ParseJsonText<BenchRecord>("benchmark record", kBenchSchema, json));
  RETURN_IF_ERROR(CheckValues(record));
  return record;
}

absl::StatusOr<BenchRecord> ReadBenchRecord(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  auto record = ParseBenchRecord(content);
  if (!record.ok()) return Annotate(record.status(), path);
  return record;
}

}  // namespace convlab
