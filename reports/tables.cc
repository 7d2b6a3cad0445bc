#include "reports/tables.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/statistics.h"

namespace convlab {
namespace {

// Three significant digits at least: what a table needs and a run can repeat.
std::string Seconds(double seconds) {
  return absl::StrFormat(seconds < 1 ? "%.4f" : "%.3f", seconds);
}

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
  return flops / OpTimeSum(record) * 1e-9;
}

}  // namespace

double OpTimeSum(const RunRecord& record) {
  double sum = 0;
  for (const ConvolutionRecord& convolution : record.convolutions) {
    sum += OpTime(convolution);
  }
  return sum;
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
      return other == nullptr ? std::string("–")
                              : absl::StrFormat("%.2f×", OpTimeSum(*other) /
                                                             OpTimeSum(record));
    };
    absl::StrAppend(
        &table, "| ", RungOf(record), " | `", record.convolutions[0].variant,
        "` | ", OpTimes(record), " | ", Seconds(OpTimeSum(record)), " | ",
        absl::StrFormat("%.1f", Gflops(record)), " | ", faster_than(before),
        " | ", faster_than(before == nullptr ? nullptr : &records.front()),
        " |\n");
    before = &record;
  }
  return table;
}

std::string NetworksTable(const std::vector<RunRecord>& records) {
  std::string table =
      "| network | images | correct | op times, s | program, s | memory, MB "
      "|\n|---|---|---|---|---|---|\n";
  for (const RunRecord& record : records) {
    absl::StrAppend(
        &table, "| ", record.network, " | ", record.size, " | ", record.correct,
        absl::StrFormat(" (%.2f %%)", 100.0 * record.correct / record.size),
        " | ", OpTimes(record), " | ",
        absl::StrFormat("%.1f | %d |\n", record.usage.elapsed_ns * 1e-9,
                        record.usage.max_resident_bytes / 1000000));
  }
  return table;
}

}  // namespace convlab
