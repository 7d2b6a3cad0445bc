#include "reports/tables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/ladder_rows.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

double OpTime(const ConvolutionRecord& convolution) {
  return Median(convolution.op_time_ns) * 1e-9;
}

std::string OpTimes(const std::vector<ConvolutionRecord>& convolutions) {
  std::string cells;
  for (const ConvolutionRecord& convolution : convolutions) {
    absl::StrAppend(&cells, cells.empty() ? "" : " + ",
                    Seconds(OpTime(convolution)));
  }
  return cells;
}

// One ladder of runs of one variant each, in the order of the rungs.
RunRecord Combine(std::vector<RunRecord> records) {
  RunRecord ladder;
  for (RunRecord& record : records) {
    LadderRun& run = ladder.ladder.emplace_back();
    run.variant = record.convolutions.at(0).variant;
    run.convolutions = std::move(record.convolutions);
    ladder.variants[run.variant] = record.variants.at(run.variant);
  }
  std::stable_sort(ladder.ladder.begin(), ladder.ladder.end(),
                   [&](const LadderRun& a, const LadderRun& b) {
                     return ladder.variants[a.variant].rung <
                            ladder.variants[b.variant].rung;
                   });
  return ladder;
}

}  // namespace

absl::Status CheckDescribed(const RunRecord& record) {
  const auto check = [&](const std::vector<ConvolutionRecord>& convolutions) {
    if (convolutions.empty()) {
      for (const auto& [name, variant] : record.variants) {
        const auto& verification = variant.verification;
        if (!verification || IsRight(*verification)) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "the record lacks convolutions, because the judge calls '", name,
            "' ", verification->outcome,
            verification->reason.empty() ? "" : ": ",
            verification->reason.empty() ? "" : verification->reason[0]));
      }
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
  if (record.ladder.empty() || !record.convolutions.empty()) {
    RETURN_IF_ERROR(check(record.convolutions));
  }
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

absl::Status CheckComplete(const RunRecord& record) {
  if (record.profile.has_value()) {
    return absl::InvalidArgumentError(
        "the record is of a traced run, whose times include the cost of "
        "tracing: make one without --profile");
  }
  if (record.fuses()) {
    return absl::InvalidArgumentError(
        "the record's op times include activation or pooling: make one without "
        "--fuse");
  }
  return CheckDescribed(record);
}

std::string LadderTable(std::vector<RunRecord> records) {
  const RunRecord ladder = Combine(std::move(records));
  std::string table =
      "| rung | variant | op times, s | sum, s | GFLOP/s | speedup over the "
      "previous lesson | over the first |\n|---|---|---|---|---|---|---|\n";
  for (const LadderRow& row : RowsOf(ladder).rows) {
    absl::StrAppend(&table, "| ", row.variant->rung, " | `", row.run->variant,
                    "` | ", OpTimes(row.run->convolutions), " | ",
                    Seconds(row.times->sum_ns * 1e-9), " | ",
                    absl::StrFormat("%.1f", row.flops / row.times->sum_ns),
                    " | ", Ratio(row.than_before), " | ",
                    Ratio(row.times->than_first), " |\n");
  }
  return table;
}

std::string LessonsTable(const RunRecord& record) {
  const LadderRows rows = RowsOf(record);
  std::string table =
      "| rung | variant | op times, ms | sum, ms | speedup over the previous "
      "lesson | over the first | error | remark |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const LadderRow& row : rows.rows) {
    if (!row.is_lesson) continue;
    const LadderRun& run = *row.run;
    absl::StrAppend(&table, "| ", row.variant->rung, " | `", run.variant,
                    "` | ");
    if (!row.times) {
      absl::StrAppend(&table, "– | – | – | – | – | ", run.failure, " |\n");
      continue;
    }
    absl::StrAppend(&table, MillisecondsOf(row.times->ns), " | ",
                    Milliseconds(row.times->sum_ns), " | ",
                    Ratio(row.than_before), " | ", Ratio(row.times->than_first),
                    absl::StrFormat(" | %.0e | ", run.relative_error),
                    row.variant->detour, " |\n");
  }
  if (rows.library) {
    const PeerRecord& peer = *rows.library->first_layer;
    const LadderTimes& times = rows.library->times;
    absl::StrAppend(
        &table, "| – | ", peer.library, " | ", MillisecondsOf(times.ns), " | ",
        Milliseconds(times.sum_ns), " | – | ", Ratio(times.than_first),
        absl::StrFormat(" | %.0e | the best of ", peer.relative_error),
        peer.plans, " plans |\n");
  }
  return table;
}

std::string OthersTable(const RunRecord& record) {
  std::string table =
      "| variant | track | op times, ms | sum, ms | speedup over the first "
      "lesson | over the library | class | error | correct |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const LadderRow& row : RowsOf(record).rows) {
    if (row.is_lesson) continue;
    const LadderRun& run = *row.run;
    absl::StrAppend(&table, "| `", run.variant, "` | ", row.variant->track,
                    " | ");
    if (!row.times) {
      absl::StrAppend(&table, run.failure, " | | | | | | |\n");
      continue;
    }
    const LadderTimes& times = *row.times;
    absl::StrAppend(
        &table, MillisecondsOf(times.ns), " | ", Milliseconds(times.sum_ns),
        " | ", Ratio(times.than_first), " | ", Ratio(times.than_library), " | ",
        row.variant->accuracy_class,
        absl::StrFormat(" | %.0e | ", run.relative_error), run.correct, " |\n");
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
        " | ", OpTimes(record.convolutions), " | ",
        absl::StrFormat("%.1f | %d |\n", record.usage.elapsed_ns * 1e-9,
                        bytes / 1000000));
  }
  return table;
}

}  // namespace convlab
