#include "reports/network_tables.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "reports/deliverables/charts.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

constexpr char kDash[] = "–";
constexpr char kOurs[] = "convlab";
constexpr char kPeer[] = "cudnn";

std::string PeerOf(const NetworkRecord& record) {
  return record.peer.empty() ? "the library" : record.peer;
}

std::string CaptionOf(const NetworkRecord& record) {
  return absl::StrCat(
      "Measured on ",
      record.device == "cpu" ? record.host.cpu : record.gpu.name, ", revision ",
      record.git_revision, ", beside ", PeerOf(record),
      record.peer.empty() ? "" : " and cuBLAS", " layer by layer as a graph.");
}

std::vector<std::string> NetworksOf(const NetworkRecord& record) {
  std::vector<std::string> names;
  for (const NetworkRow& row : record.rows) {
    if (std::find(names.begin(), names.end(), row.network) == names.end()) {
      names.push_back(row.network);
    }
  }
  return names;
}

// Three digits of a time, in microseconds below a millisecond.
std::string Time(double us) {
  const double value = us < 1000 ? us : us * 1e-3;
  const int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return absl::StrFormat("%.*f %s", digits, value, us < 1000 ? "µs" : "ms");
}

// Three digits of a rate: "53.7 k", "5.37 M".
std::string Rate(double per_second) {
  const bool millions = per_second >= 1e6;
  const double value = per_second * (millions ? 1e-6 : 1e-3);
  const int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return absl::StrFormat("%.*f %s", digits, value, millions ? "M" : "k");
}

// "34.8 µs : 54.1 µs", a dash for what was not measured.
std::string Both(const NetworkRecord& record, const std::string& network,
                 int64_t images, const char* path) {
  const NetworkRow* const ours = FindRow(record, network, images, kOurs, path);
  const NetworkRow* const peer = FindRow(record, network, images, kPeer, path);
  if (ours == nullptr) return kDash;
  return absl::StrCat(Time(ours->p50_us), " : ",
                      peer == nullptr ? kDash : Time(peer->p50_us));
}

// A curve over the images of a provider's rows of that path.
Curve CurveOf(const NetworkRecord& record, const std::string& network,
              const char* provider, const char* path, const std::string& title,
              double (*value)(const NetworkRow& row)) {
  Curve curve = {title, {}};
  for (const NetworkRow& row : record.rows) {
    if (row.network != network || row.provider != provider ||
        row.path != path) {
      continue;
    }
    curve.points.emplace_back(row.images, value(row));
  }
  std::sort(curve.points.begin(), curve.points.end());
  return curve;
}

}  // namespace

absl::StatusOr<std::optional<NetworkRecord>> ReadNetworks(
    const std::string& path) {
  absl::StatusOr<NetworkRecord> record = ReadNetworkRecord(path);
  if (absl::IsNotFound(record.status())) {
    return std::optional<NetworkRecord>();
  }
  RETURN_IF_ERROR(record.status());
  if (record->rows.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the record lacks rows"));
  }
  return std::optional<NetworkRecord>(*std::move(record));
}

std::string NetworksDigest(const NetworkRecord& record) {
  std::string table = absl::StrCat(
      CaptionOf(record),
      " Medians, ours : the library's.\n\n"
      "| network | 1 image, host | 100 images, host | 10,000 images, host | "
      "10,000 images, device |\n|---|---|---|---|---|\n");
  for (const std::string& network : NetworksOf(record)) {
    absl::StrAppend(&table, "| ", network, " | ",
                    Both(record, network, 1, kHostPath), " | ",
                    Both(record, network, 100, kHostPath), " | ",
                    Both(record, network, 10000, kHostPath), " | ",
                    Both(record, network, 10000, kDevicePath), " |\n");
  }
  return table;
}

std::string SeveralGpusTable(const NetworkRecord& record) {
  std::string table = absl::StrCat(
      "Measured on ", record.gpu.name, ", revision ", record.git_revision,
      ".\n\n| network | GPUs | images | p50 | images/s | times one GPU "
      "|\n|---|---|---|---|---|---|\n");
  const NetworkRow* one_gpu = nullptr;  // each network's rows begin with it
  for (const NetworkRow& row : record.rows) {
    if (row.path != kDevicesPath) continue;
    if (row.gpus == 1) one_gpu = &row;
    const bool known = one_gpu != nullptr && one_gpu->network == row.network;
    absl::StrAppend(
        &table, "| ", row.network, " | ", row.gpus, " | ", row.images, " | ",
        Time(row.p50_us), " | ", Rate(row.images_per_s), " | ",
        known
            ? absl::StrFormat("%.2f", row.images_per_s / one_gpu->images_per_s)
            : kDash,
        " |\n");
  }
  return table;
}

std::string NetworksFigures(const NetworkRecord& record) {
  std::string table = absl::StrCat(
      CaptionOf(record),
      "\n\n| network | images | path | p50 | p99 | images/s | library, p50 | "
      "library, p99 | speedup | MHz "
      "|\n|---|---|---|---|---|---|---|---|---|---|"
      "\n");
  for (const NetworkRow& row : record.rows) {
    if (row.provider != kOurs) continue;
    const NetworkRow* const peer =
        FindRow(record, row.network, row.images, kPeer, row.path);
    absl::StrAppend(
        &table, "| ", row.network, " | ", row.images, " | ", row.path, " | ",
        Time(row.p50_us), " | ", Time(row.p99_us), " | ",
        Rate(row.images_per_s), " | ",
        peer == nullptr ? kDash : Time(peer->p50_us), " | ",
        peer == nullptr ? kDash : Time(peer->p99_us), " | ",
        peer == nullptr ? kDash : Ratio(peer->p50_us, row.p50_us), " | ",
        row.sm_clock_mhz ? absl::StrFormat("%.0f", *row.sm_clock_mhz) : kDash,
        " |\n");
  }
  return table;
}

std::vector<Chart> NetworkCharts(const NetworkRecord& record) {
  const std::vector<std::string> networks = NetworksOf(record);
  const std::string network =
      std::find(networks.begin(), networks.end(), "fa19") != networks.end()
          ? "fa19"
          : networks.front();
  const std::string peer = PeerOf(record);
  std::vector<Curve> curves;
  const auto add = [&](const char* provider, const char* path,
                       const std::string& name,
                       double (*value)(const NetworkRow&)) {
    curves.push_back(CurveOf(record, network, provider, path, name, value));
    if (curves.back().points.empty()) curves.pop_back();
  };
  std::vector<Chart> charts;
  const auto draw = [&](const char* name, const char* from,
                        const char* quantity, const char* unit) {
    if (!curves.empty()) {
      charts.push_back(
          CurvesChart(name, absl::StrCat(network, from, ", ", record.gpu.name),
                      quantity, unit, curves));
    }
    curves.clear();
  };
  const auto rate = [](const NetworkRow& row) {
    return row.images_per_s * 1e-6;
  };
  add(kOurs, kDevicePath, "ours, in device memory", rate);
  add(kPeer, kDevicePath, peer + ", in device memory", rate);
  add(kOurs, kHostPath, "ours, from host memory", rate);
  add(kPeer, kHostPath, peer + ", from host memory", rate);
  draw("networks-rate", "", "throughput", "million images/s");
  const auto median = [](const NetworkRow& row) { return row.p50_us; };
  const auto slow = [](const NetworkRow& row) { return row.p99_us; };
  add(kOurs, kHostPath, "ours, median", median);
  add(kPeer, kHostPath, peer + ", median", median);
  add(kOurs, kHostPath, "ours, 99th percentile", slow);
  add(kPeer, kHostPath, peer + ", 99th percentile", slow);
  draw("networks-latency", " from host memory", "time of a call", "µs");
  return charts;
}

}  // namespace convlab
