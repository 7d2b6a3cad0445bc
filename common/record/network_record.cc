#include "common/record/network_record.h"

#include <cmath>
#include <set>
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
void Fields(Visitor& visit, NetworkRow& row) {
  visit("network", row.network);
  visit("images", row.images);
  visit("provider", row.provider);
  visit("path", row.path);
  visit("gpus", row.gpus);
  visit("p50_us", row.p50_us);
  visit("p90_us", row.p90_us);
  visit("p99_us", row.p99_us);
  visit("least_us", row.least_us);
  visit("images_per_s", row.images_per_s);
  visit("samples", row.samples);
  visit("sm_clock_mhz", row.sm_clock_mhz);
  visit("plans", row.plans);
  visit("stages_us", row.stages_us);
}

template <typename Visitor>
void Fields(Visitor& visit, NetworkOmission& omission) {
  visit("network", omission.network);
  visit("images", omission.images);
  visit("provider", omission.provider);
  visit("path", omission.path);
  visit("reason", omission.reason);
}

template <typename Visitor>
void Fields(Visitor& visit, NetworkRecord& record) {
  BenchmarkFields(visit, record);
  visit("peer", record.peer);
  visit("rows", record.rows);
  visit("omissions", record.omissions);
}

namespace {

void Check(ValueChecker& check, const std::string& here,
           const NetworkRow& row) {
  constexpr double kDayUs = kDayNs * 1e-3;
  check.Range(here + "images", row.images, 1, kMostImages);
  check.Range(here + "samples", row.samples, 1, INT32_MAX);
  check.Range(here + "gpus", row.gpus, 1, 1024);
  if (row.path != kHostPath && row.path != kDevicePath &&
      row.path != kFloatsPath && row.path != kDevicesPath) {
    check.Fail(absl::StrCat(here, "path is '", row.path, "', expected ",
                            kHostPath, ", ", kDevicePath, ", ", kFloatsPath,
                            " or ", kDevicesPath));
  }
  double below = 0;
  for (const auto& [field, value] : {std::pair("least_us", row.least_us),
                                     {"p50_us", row.p50_us},
                                     {"p90_us", row.p90_us},
                                     {"p99_us", row.p99_us}}) {
    check.Positive(here + field, value, kDayUs);
    if (value < below) {
      check.Fail(absl::StrCat(here, field, " is ", value,
                              ", less than a smaller percentile, ", below));
    }
    below = value;
  }
  const double rate = static_cast<double>(row.images) / row.p50_us * 1e6;
  if (!(std::fabs(row.images_per_s - rate) <= 0.01 * rate)) {
    check.Fail(absl::StrCat(here, "images_per_s is ", row.images_per_s,
                            ", but that of the median is ", rate));
  }
  check.NotNegative(here + "sm_clock_mhz", row.sm_clock_mhz.value_or(0));
  for (size_t i = 0; i < row.stages_us.size(); ++i) {
    check.NotNegative(absl::StrCat(here, "stages_us[", i, "]"),
                      row.stages_us[i]);
  }
}

}  // namespace

const NetworkRow* FindRow(const NetworkRecord& record,
                          absl::string_view network, int64_t images,
                          absl::string_view provider, absl::string_view path,
                          int gpus) {
  for (const NetworkRow& row : record.rows) {
    if (row.network == network && row.images == images &&
        row.provider == provider && row.path == path && row.gpus == gpus) {
      return &row;
    }
  }
  return nullptr;
}

absl::Status CheckValues(const NetworkRecord& record) {
  ValueChecker check;
  check.Machine(record.host, record.gpu);
  std::set<std::tuple<std::string, int64_t, std::string, std::string, int>>
      seen;
  for (size_t i = 0; i < record.rows.size(); ++i) {
    const NetworkRow& row = record.rows[i];
    const std::string here = absl::StrCat("record.rows[", i, "].");
    Check(check, here, row);
    if (!seen.insert(
                 {row.network, row.images, row.provider, row.path, row.gpus})
             .second) {
      check.Fail(absl::StrCat(here, "path is '", row.path,
                              "', as that of an earlier row of the same "
                              "network, images, provider and GPUs"));
    }
  }
  return check.Take();
}

std::string ToJson(const NetworkRecord& record) {
  return ToJsonText(kNetworkSchema, record);
}

absl::StatusOr<NetworkRecord> ParseNetworkRecord(absl::string_view json) {
  ASSIGN_OR_RETURN(
      NetworkRecord record,
      ParseJsonText<NetworkRecord>("network record", kNetworkSchema, json));
  RETURN_IF_ERROR(CheckValues(record));
  return record;
}

absl::StatusOr<NetworkRecord> ReadNetworkRecord(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  auto record = ParseNetworkRecord(content);
  if (!record.ok()) return Annotate(record.status(), path);
  return record;
}

}  // namespace convlab
