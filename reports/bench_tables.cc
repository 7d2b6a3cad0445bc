#include "reports/bench_tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

constexpr char kDash[] = "–";

// The measured layers at their batches in the order of the rows, without
// neighbours.
std::vector<std::pair<std::string, int64_t>> LayersOf(
    const BenchRecord& record) {
  std::vector<std::pair<std::string, int64_t>> layers;
  for (const BenchRow& row : record.rows) {
    const std::pair layer(row.layer, row.batch);
    if (!row.neighbour_of &&
        std::find(layers.begin(), layers.end(), layer) == layers.end()) {
      layers.push_back(layer);
    }
  }
  return layers;
}

// Our row and the library's for one layer; either may be null.
struct Pair {
  const BenchRow* ours;
  const BenchRow* peer;

  // The speedup of our kernel over the library.
  std::optional<double> ratio() const {
    if (ours == nullptr || peer == nullptr) return std::nullopt;
    return peer->median_ms / ours->median_ms;
  }
};

Pair PairOf(const BenchRecord& record, const std::string& layer, int64_t batch,
            const char* accuracy_class) {
  return {FastestRow(record, By::kUs, layer, batch, accuracy_class),
          FastestRow(record, By::kLibrary, layer, batch, accuracy_class)};
}

// Formats ms, with one more digit for small values.
std::string Ms(double ms) {
  return absl::StrFormat("%.*f", ms < 0.1 ? 4 : 3, ms);
}

// "4560 GB/s written, 66 TFLOP/s in float32".
std::string CeilingsText(const Ceilings& ceilings) {
  std::vector<std::string> parts;
  const auto add = [&](const std::optional<double>& value, const char* what) {
    if (value) parts.push_back(absl::StrFormat("%.0f %s", *value, what));
  };
  add(ceilings.fill_gbs, "GB/s written");
  add(ceilings.copy_gbs, "GB/s copied");
  add(ceilings.fp32_tflops, "TFLOP/s by float32 units");
  add(ceilings.tf32_tflops, "by tensor cores in TF32");
  add(ceilings.fp16_tflops, "in FP16");
  return absl::StrJoin(parts, ", ");
}

std::string GeometricMean(const std::vector<double>& ratios) {
  double sum = 0;
  for (const double ratio : ratios) sum += std::log(ratio);
  return absl::StrFormat("%.2f", std::exp(sum / ratios.size()));
}

// Of the layers that both have, and beside it that against the library's
// fastest plans of all, if some are faster because they break the contract.
std::string GeometricMeanText(const BenchRecord& record) {
  std::vector<double> ratios, all;
  for (const auto& [layer, batch] : LayersOf(record)) {
    const Pair pair = PairOf(record, layer, batch, "fp32");
    if (!pair.ratio()) continue;
    const BenchRow* const any =
        FastestRow(record, By::kLibrary, layer, batch, "fp32-normwise");
    ratios.push_back(*pair.ratio());
    all.push_back(any == nullptr
                      ? *pair.ratio()
                      : std::min(*pair.ratio(), *Pair{pair.ours, any}.ratio()));
  }
  if (ratios.empty()) return "";
  const std::string beside =
      all == ratios
          ? ""
          : absl::StrCat(", and ", GeometricMean(all),
                         " times as fast as its fastest plans of all, some of "
                         "which break the contract of class `fp32`");
  return absl::StrCat("\nGeometric mean over ",
                      Plural(static_cast<int64_t>(ratios.size()), "layer"),
                      ": ", GeometricMean(ratios), " times as fast as cuDNN",
                      beside, ".\n");
}

absl::StatusOr<std::optional<BenchRecord>> ReadIfThere(
    const std::string& path) {
  absl::StatusOr<BenchRecord> record = ReadBenchRecord(path);
  if (absl::IsNotFound(record.status())) return std::optional<BenchRecord>();
  if (record.ok()) {
    RETURN_IF_ERROR(Annotate(CheckComplete(*record), path));
  }
  return record;
}

}  // namespace

std::string Caption(const BenchRecord& record) {
  return absl::StrCat("Measured on ", record.gpu.name, ", revision ",
                      record.git_revision,
                      record.peer.empty() ? "" : ", beside ", record.peer, ".");
}

absl::Status CheckComplete(const BenchRecord& record) {
  if (record.rows.empty()) {
    return absl::InvalidArgumentError("the record lacks rows");
  }
  for (size_t i = 0; i < record.rows.size(); ++i) {
    if (record.rows[i].layer.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("record.rows[", i, "] names no layer"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BenchRecords> ReadBenchRecords(const std::string& folder) {
  BenchRecords records;
  for (const auto& [name, record] : {std::pair("fp32", &records.fp32),
                                     {"fp16", &records.fp16},
                                     {"small", &records.small},
                                     {"neighbours", &records.neighbours}}) {
    ASSIGN_OR_RETURN(
        *record, ReadIfThere(absl::StrCat(folder, "/bench-", name, ".json")));
  }
  return records;
}

std::string LayersTable(const BenchRecord& record) {
  std::string table =
      "| layer | ours | ms | IQR, ms | cuDNN, ms | speedup | floor, ms | "
      "share of the floor | error | SM clock, MHz |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& [layer, batch] : LayersOf(record)) {
    const Pair pair = PairOf(record, layer, batch, "fp32");
    if (pair.ours == nullptr) continue;
    const BenchRow& ours = *pair.ours;
    const std::optional<double> share = FloorShare(ours);
    absl::StrAppend(
        &table, "| ", layer, " | `", ours.variant, "` | ", Ms(ours.median_ms),
        " | ", absl::StrFormat("%.4f", ours.iqr_ms), " | ",
        pair.peer == nullptr ? kDash : Ms(pair.peer->median_ms), " | ",
        Ratio(pair.ratio()), " | ", ours.floor_ms ? Ms(*ours.floor_ms) : kDash,
        " | ", share ? absl::StrFormat("%.0f %%", 100 * *share) : kDash, " | ",
        absl::StrFormat("%.0e", ours.error), " | ",
        ours.sm_clock_mhz ? absl::StrFormat("%.0f", *ours.sm_clock_mhz) : kDash,
        " |\n");
  }
  absl::StrAppend(&table, GeometricMeanText(record));
  return table;
}

std::string HeadlineTable(const BenchRecord& record) {
  std::string table = absl::StrCat(Caption(record), R"(

| layer | ours | ms | cuDNN, ms | speedup | share of the floor |
|---|---|---|---|---|---|
)");
  for (const auto& [layer, batch] : LayersOf(record)) {
    const Pair pair = PairOf(record, layer, batch, "fp32");
    if (pair.ours == nullptr) continue;
    const std::optional<double> share = FloorShare(*pair.ours);
    absl::StrAppend(&table, "| ", layer, " | `", pair.ours->variant, "` | ",
                    Ms(pair.ours->median_ms), " | ",
                    pair.peer == nullptr ? kDash : Ms(pair.peer->median_ms),
                    " | ", Ratio(pair.ratio()), " | ",
                    share ? absl::StrFormat("%.0f %%", 100 * *share) : kDash,
                    " |\n");
  }
  absl::StrAppend(&table, GeometricMeanText(record));
  return table;
}

std::vector<ChartedLayer> TimesOf(const BenchRecord& record) {
  std::vector<ChartedLayer> times;
  for (const auto& [layer, batch] : LayersOf(record)) {
    const Pair pair = PairOf(record, layer, batch, "fp32");
    if (pair.ours == nullptr) continue;
    times.push_back({layer, pair.ours->median_ms,
                     pair.peer == nullptr ? std::nullopt
                                          : std::optional(pair.peer->median_ms),
                     pair.ours->floor_ms});
  }
  return times;
}

std::string HalfPrecisionTable(const BenchRecord& record) {
  std::string table =
      "| layer | ours | ms | IQR, ms | cuDNN, ms | speedup | error |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const auto& [layer, batch] : LayersOf(record)) {
    const Pair pair = PairOf(record, layer, batch, "fp16");
    if (pair.ours == nullptr || pair.ours->channels == 1) continue;
    absl::StrAppend(&table, "| ", layer, " | `", pair.ours->variant, "` | ",
                    Ms(pair.ours->median_ms), " | ",
                    absl::StrFormat("%.4f", pair.ours->iqr_ms), " | ",
                    pair.peer == nullptr ? kDash : Ms(pair.peer->median_ms),
                    " | ", Ratio(pair.ratio()), " | ",
                    absl::StrFormat("%.0e |\n", pair.ours->error));
  }
  return table;
}

std::string BatchesTable(const BenchRecord& record) {
  std::vector<std::string> layers;
  std::set<int64_t> batches;
  for (const auto& [layer, batch] : LayersOf(record)) {
    if (layers.empty() || layers.back() != layer) layers.push_back(layer);
    batches.insert(batch);
  }
  std::string table = "| layer |", rule = "|---|";
  for (const int64_t batch : batches) {
    absl::StrAppend(&table, " ", Plural(batch, "image"), " |");
    absl::StrAppend(&rule, "---|");
  }
  absl::StrAppend(&table, "\n", rule, "\n");
  for (const std::string& layer : layers) {
    absl::StrAppend(&table, "| ", layer, " |");
    for (const int64_t batch : batches) {
      const Pair pair = PairOf(record, layer, batch, "fp32");
      if (pair.ours == nullptr || pair.peer == nullptr) {
        absl::StrAppend(&table, " ", kDash, " |");
        continue;
      }
      absl::StrAppend(&table, " ", Ms(pair.ours->median_ms), " : ",
                      Ms(pair.peer->median_ms), " = ", Ratio(pair.ratio()),
                      " |");
    }
    table += "\n";
  }
  return table;
}

std::string NeighboursText(const BenchRecord& record) {
  const std::vector<Neighbour> neighbours = Neighbours(record);
  std::vector<std::string> behind;
  // Keyed by the layer's row, in the order of the record.
  std::map<const BenchRow*, const Neighbour*> worst;
  for (const Neighbour& neighbour : neighbours) {
    const Neighbour*& one = worst[neighbour.layer];
    if (one == nullptr || neighbour.quotient < one->quotient) one = &neighbour;
    if (neighbour.quotient < kLeastNeighbour) {
      behind.push_back(absl::StrFormat("%s %s (%.2f)", neighbour.layer->layer,
                                       neighbour.change, neighbour.quotient));
    }
  }
  std::vector<std::string> least;
  least.reserve(worst.size());
  for (const auto& [row, neighbour] : worst) {
    least.push_back(absl::StrFormat("%s %.2f (%s)", row->layer,
                                    neighbour->quotient, neighbour->change));
  }
  return absl::StrCat(
      neighbours.size() - behind.size(), " of ",
      Plural(static_cast<int64_t>(neighbours.size()), "neighbour"),
      " (H and W ±1, M ±1, C +1, K ±2) reach at least half the share of their "
      "own floor that the layer reaches",
      behind.empty() ? "" : "; less: ", absl::StrJoin(behind, ", "),
      ". The least quotient of each layer: ", absl::StrJoin(least, ", "),
      ".\n");
}

std::string BenchPassage(const BenchRecords& records,
                         const std::string& chart) {
  std::string passage;
  std::vector<std::string> missing;
  const auto add = [&](const char* name,
                       const std::optional<BenchRecord>& record,
                       absl::string_view title, auto format) {
    if (!record) {
      missing.push_back(absl::StrCat("`bench-", name, "`"));
      return;
    }
    absl::StrAppend(&passage, passage.empty() ? "" : "\n", title,
                    title.empty() ? "" : " ", Caption(*record), "\n\n",
                    format(*record));
  };
  add("fp32", records.fp32, "", [&](const BenchRecord& record) {
    return absl::StrCat(FloorText(RatesOf(record.ceilings),
                                  absl::StrCat("the best that this run "
                                               "measured: ",
                                               CeilingsText(record.ceilings))),
                        "\n\n![Time of each layer by our fastest kernel, by "
                        "cuDNN, and its floor](",
                        chart, ")\n\n", LayersTable(record));
  });
  add("fp16", records.fp16,
      "In class `fp16`, half precision inside and float32 at the border.",
      HalfPrecisionTable);
  add("small", records.small,
      "Few images, in class `fp32`: our ms : cuDNN's = times as fast.",
      BatchesTable);
  add("neighbours", records.neighbours,
      "Layers whose sizes differ a little, by the variant that `final` takes.",
      NeighboursText);
  if (!missing.empty()) {
    absl::StrAppend(&passage, passage.empty() ? "" : "\n",
                    "Not measured: ", absl::StrJoin(missing, ", "),
                    ". On a GPU machine, `tools/measure_gpu.sh BUNDLE "
                    "reports/measured/h200 --only 'bench-*'` does.\n");
  }
  return passage;
}

}  // namespace convlab
