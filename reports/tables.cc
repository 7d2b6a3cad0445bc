#include "reports/tables.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

double OpTime(const ConvolutionRecord& convolution) {
  return Median(convolution.op_time_ns) * 1e-9;
}

std::string OpTimes(const RunRecord& record) {
  std::string cells;
  for (const ConvolutionRecord& convolution : record.convolutions) {
    absl::StrAppend(&cells, cells.empty() ? "" : " + ",
                    Seconds(OpTime(convolution)));
  }
  return cells;
}

int RungOf(const RunRecord& record) {
  return record.variants.at(record.convolutions.at(0).variant).rung;
}

double Gflops(const RunRecord& record) {
  double flops = 0;
  for (const ConvolutionRecord& convolution : record.convolutions) {
    flops += convolution.flops;
  }
  return flops / OpTimeSum(record.convolutions);
}

}  // namespace

absl::Status CheckComplete(const RunRecord& record) {
  if (record.profile.has_value()) {
    return absl::InvalidArgumentError(
        "the record is of a traced run, whose times hold what the tracing "
        "costs: make one without --profile");
  }
  const auto check = [&](const std::vector<ConvolutionRecord>& convolutions) {
    if (convolutions.empty()) {
      return absl::InvalidArgumentError("the record lacks convolutions");
    }
    for (size_t i = 0; i < convolutions.size(); ++i) {
      const std::string where = absl::StrCat("convolution ", i + 1);
      if (record.variants.count(convolutions[i].variant) == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("the record lacks variant '", convolutions[i].variant,
                         "' of ", where));
      }
      if (convolutions[i].op_time_ns.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat("the record lacks op times of ", where));
      }
    }
    return absl::OkStatus();
  };
  if (record.ladder.empty()) return check(record.convolutions);
  for (const LadderRun& run : record.ladder) {
    if (record.variants.count(run.variant) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the record lacks variant '", run.variant, "'"));
    }
    if (run.failure.empty()) {
      RETURN_IF_ERROR(Annotate(check(run.convolutions),
                               absl::StrCat("'", run.variant, "'")));
    }
  }
  for (const PeerRecord& peer : record.peers) {
    if (peer.kernel_time_ns.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the record lacks the library's kernel times of layer ", peer.layer));
    }
  }
  return absl::OkStatus();
}

std::string LadderTable(std::vector<RunRecord> records) {
  std::stable_sort(records.begin(), records.end(),
                   [](const RunRecord& a, const RunRecord& b) {
                     return RungOf(a) < RungOf(b);
                   });
  std::string table =
      "| rung | variant | op times, s | sum, s | GFLOP/s | than the rung "
      "before "
      "| than the first |\n|---|---|---|---|---|---|---|\n";
  const RunRecord* before = nullptr;
  for (const RunRecord& record : records) {
    const auto faster_than = [&](const RunRecord* other) {
      return other == nullptr
                 ? std::string("–")
                 : absl::StrFormat("%.2f×", OpTimeSum(other->convolutions) /
                                                OpTimeSum(record.convolutions));
    };
    absl::StrAppend(&table, "| ", RungOf(record), " | `",
                    record.convolutions[0].variant, "` | ", OpTimes(record),
                    " | ", Seconds(OpTimeSum(record.convolutions) * 1e-9),
                    " | ", absl::StrFormat("%.1f", Gflops(record)), " | ",
                    faster_than(before), " | ",
                    faster_than(before == nullptr ? nullptr : &records.front()),
                    " |\n");
    before = &record;
  }
  return table;
}

std::string ComparisonTable(const RunRecord& record) {
  double peer_sum = 0;
  std::string peer_cells;
  for (const PeerRecord& peer : record.peers) {
    const double ns = Median(peer.kernel_time_ns);
    peer_sum += ns;
    absl::StrAppend(&peer_cells, peer_cells.empty() ? "" : " + ",
                    Milliseconds(ns));
  }
  std::string table =
      "| rung | variant | op times, ms | sum, ms | than the rung before | than "
      "the first | than the library | class | error | correct "
      "|\n|---|---|---|---|---|---|---|---|---|---|\n";
  double first = 0, before = 0;
  for (const LadderRun& run : record.ladder) {
    absl::StrAppend(&table, "| ", record.variants.at(run.variant).rung, " | `",
                    run.variant, "` | ");
    if (!run.failure.empty()) {
      absl::StrAppend(&table, run.failure, " | | | | | | | |\n");
      continue;
    }
    const double sum = OpTimeSum(run.convolutions);
    std::string cells;
    for (const ConvolutionRecord& convolution : run.convolutions) {
      absl::StrAppend(&cells, cells.empty() ? "" : " + ",
                      Milliseconds(Median(convolution.op_time_ns)));
    }
    absl::StrAppend(
        &table, cells, " | ", Milliseconds(sum), " | ", Ratio(before, sum),
        " | ", Ratio(first, sum), " | ", Ratio(peer_sum, sum), " | ",
        record.variants.at(run.variant).accuracy_class,
        absl::StrFormat(" | %.0e | ", run.relative_error), run.correct, " |\n");
    before = sum;
    if (&run == &record.ladder.front()) first = sum;
  }
  if (!record.peers.empty()) {
    absl::StrAppend(
        &table, "| – | ", record.peers[0].library, ", the best of ",
        record.peers[0].plans, " plans | ", peer_cells, " | ",
        Milliseconds(peer_sum), " | – | ", Ratio(first, peer_sum), " | – | ",
        record.peers[0].accuracy_class,
        absl::StrFormat(" | %.0e | – |\n", record.peers[0].relative_error));
  }
  return table;
}

std::string NetworksTable(const std::vector<RunRecord>& records) {
  std::string table =
      "| network | images | correct | op times, s | program, s | memory, MB "
      "|\n|---|---|---|---|---|---|\n";
  for (const RunRecord& record : records) {
    // Of the machine that the network's tensors are on.
    const int64_t bytes = record.device == "gpu"
                              ? record.device_memory_peak_bytes
                              : record.usage.max_resident_bytes;
    absl::StrAppend(
        &table, "| ", record.network, " | ", record.size, " | ", record.correct,
        absl::StrFormat(" (%.2f %%)", 100.0 * record.correct / record.size),
        " | ", OpTimes(record), " | ",
        absl::StrFormat("%.1f | %d |\n", record.usage.elapsed_ns * 1e-9,
                        bytes / 1000000));
  }
  return table;
}

}  // namespace convlab
