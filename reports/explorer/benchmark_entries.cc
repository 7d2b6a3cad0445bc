#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "reports/explorer/entries.h"

namespace convlab {
namespace {

// Times of whole networks, in microseconds.
struct WholeRow {
  int64_t images = 0;
  std::string provider, path;
  double p50 = 0, p90 = 0, p99 = 0, least = 0;
};

template <typename Visitor>
void Fields(Visitor& visit, WholeRow& row) {
  visit("images", row.images);
  visit("provider", row.provider);
  visit("from", row.path);
  visit("p50", row.p50);
  visit("p90", row.p90);
  visit("p99", row.p99);
  visit("least", row.least);
}

struct Whole {
  std::string path, who, machine, started, revision, network, peer;
  std::vector<WholeRow> rows;
};

template <typename Visitor>
void Fields(Visitor& visit, Whole& whole) {
  visit("path", whole.path);
  visit("who", whole.who);
  visit("machine", whole.machine);
  visit("started", whole.started);
  visit("revision", whole.revision);
  visit("network", whole.network);
  visit("peer", whole.peer);
  visit("rows", whole.rows);
}

// The worst family of a variant, by the contract of class fp32.
struct ContractRow {
  std::string variant, accuracy_class, family, layer;
  std::optional<double> c;  // absent: the output is wrong at any
  double allowed = 0;
  int64_t families = 0, broken = 0;
};

template <typename Visitor>
void Fields(Visitor& visit, ContractRow& row) {
  visit("variant", row.variant);
  visit("class", row.accuracy_class);
  visit("family", row.family);
  visit("layer", row.layer);
  visit("c", row.c);
  visit("allowed", row.allowed);
  visit("families", row.families);
  visit("broken", row.broken);
}

struct Contract {
  std::string path, who, machine, started, revision;
  std::vector<ContractRow> rows;
};

template <typename Visitor>
void Fields(Visitor& visit, Contract& contract) {
  visit("path", contract.path);
  visit("who", contract.who);
  visit("machine", contract.machine);
  visit("started", contract.started);
  visit("revision", contract.revision);
  visit("rows", contract.rows);
}

// The library's name for a row of a benchmark; empty for ours.
std::string LibraryOf(const BenchRecord& record, const BenchRow& row) {
  if (row.provider == "convlab" || row.provider == "kernel") return "";
  return record.peer.empty() ? row.provider : record.peer;
}

// "fa19" and 2 for "fa19-L2"; "fa17" and 1 for "fa17".
std::pair<std::string, int> LayerOf(const std::string& layer) {
  const size_t dash = layer.rfind("-L");
  int number = 0;
  if (dash == std::string::npos ||
      !absl::SimpleAtoi(layer.substr(dash + 2), &number) || number < 1 ||
      number > 99) {
    return {layer, 1};
  }
  return {layer.substr(0, dash), number};
}

// A benchmark as one run for each network and number of images, whose rows have
// the times of the network's convolutions; of a library the fastest plans.
// Convolutions that are no network's stand under their sizes, neighbours
// together.
std::vector<Run> RunsOf(const NamedBench& named, const std::string& folder) {
  const BenchRecord& record = named.record;
  std::map<std::pair<std::string, int64_t>, Run> runs;
  std::map<std::tuple<std::string, int64_t, std::string, std::string>, Row>
      rows;
  for (const BenchRow& from : record.rows) {
    const bool is_neighbour = from.neighbour_of.has_value();
    auto [network, layer] = LayerOf(from.neighbour_of.value_or(from.layer));
    if (is_neighbour) {
      absl::StrAppend(&network, ", neighbours");
      layer = 1;
    }
    Run& run = runs[{network, from.batch}];
    if (run.path.empty()) {
      NameEntry(named.path, folder, run);
      DescribeEntry(record, run);
      run.milestone = "bench";
      run.network = network;
      run.images = from.batch;
    }
    const std::string library = LibraryOf(record, from);
    std::string variant = library.empty() ? from.variant : library;
    if (is_neighbour) variant = absl::StrCat(from.layer, ": ", variant);
    Row& row = rows[{network, from.batch, variant, from.accuracy_class}];
    row.variant = variant;
    row.accuracy_class = from.accuracy_class;
    row.is_own = from.provider == "kernel";
    row.is_library = !library.empty();
    const auto i = static_cast<size_t>(layer) - 1;
    if (row.ms.size() <= i) {
      for (auto* values : {&row.ms, &row.gflop, &row.mb}) values->resize(i + 1);
    }
    if (row.ms[i] > 0 && row.ms[i] <= from.median_ms) continue;
    row.ms[i] = Rounded(from.median_ms);
    row.gflop[i] = Rounded(from.tflops * from.median_ms);
    row.mb[i] = Rounded(from.gbs * from.median_ms);
    // A library's plans take turns in one place.
    if (!row.is_library) row.iqr = Rounded(row.iqr.value_or(0) + from.iqr_ms);
    row.error = std::max(row.error, Rounded(from.error));
  }
  for (auto& [key, row] : rows) {
    runs[{std::get<0>(key), std::get<1>(key)}].rows.push_back(std::move(row));
  }
  std::vector<Run> list;
  list.reserve(runs.size());
  for (auto& [key, run] : runs) list.push_back(std::move(run));
  return list;
}

std::optional<Contract> ContractOf(const NamedBench& named,
                                   const std::string& folder) {
  const BenchRecord& record = named.record;
  if (record.accuracy.empty()) return std::nullopt;
  Contract contract;
  NameEntry(named.path, folder, contract);
  DescribeEntry(record, contract);
  for (const AccuracyRow& from : record.accuracy) {
    ContractRow& row = contract.rows.emplace_back();
    row.variant = from.provider == "convlab"
                      ? from.variant
                      : absl::StrCat(from.provider, " ", from.variant);
    row.accuracy_class = from.accuracy_class;
    double worst = -1;
    for (const FamilyRow& family : from.families) {
      ++row.families;
      const double share =
          family.c && family.allowed > 0 ? *family.c / family.allowed : 1e300;
      if (share > 1) ++row.broken;
      if (share <= worst) continue;
      worst = share;
      row.family = family.family;
      row.layer = family.layer;
      row.c = family.c;
      row.allowed = Rounded(family.allowed);
    }
    if (row.c) row.c = Rounded(*row.c);
  }
  return contract;
}

// One for each network.
std::vector<Whole> WholesOf(const NamedNetworks& named,
                            const std::string& folder) {
  std::map<std::string, Whole> wholes;
  for (const NetworkRow& from : named.record.rows) {
    Whole& whole = wholes[from.network];
    if (whole.path.empty()) {
      NameEntry(named.path, folder, whole);
      DescribeEntry(named.record, whole);
      whole.network = from.network;
      whole.peer = named.record.peer;
    }
    whole.rows.push_back({from.images, from.provider, from.path,
                          Rounded(from.p50_us), Rounded(from.p90_us),
                          Rounded(from.p99_us), Rounded(from.least_us)});
  }
  std::vector<Whole> list;
  list.reserve(wholes.size());
  for (auto& [network, whole] : wholes) list.push_back(std::move(whole));
  return list;
}

}  // namespace

void AddValues(const NamedBench& named, const std::string& folder,
               PageEntry& entry) {
  for (Run& run : RunsOf(named, folder)) {
    entry.values.emplace_back("runs", Encoded(run));
  }
  if (auto contract = ContractOf(named, folder)) {
    entry.values.emplace_back("contracts", Encoded(*contract));
  }
}

void AddValues(const NamedNetworks& named, const std::string& folder,
               PageEntry& entry) {
  for (Whole& whole : WholesOf(named, folder)) {
    entry.values.emplace_back("wholes", Encoded(whole));
  }
}

}  // namespace convlab
