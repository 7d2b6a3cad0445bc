#include "reports/explorer/page_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/str_replace.h"
#include "common/accuracy/accuracy.h"
#include "common/hardware/floor.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "reports/explorer/entries.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

// The peaks of a machine's data sheet, in GB/s and TFLOP/s.
struct Peaks {
  std::optional<double> memory, fp32_units, fp32, fp16;
};

template <typename Visitor>
void Fields(Visitor& visit, Peaks& peaks) {
  visit("memory", peaks.memory);
  visit("fp32_units", peaks.fp32_units);
  visit("fp32", peaks.fp32);
  visit("fp16", peaks.fp16);
}

Row RowOf(const RunRecord& record, const std::string& variant,
          const std::vector<ConvolutionRecord>& convolutions) {
  Row row;
  row.variant = variant;
  const auto described = record.variants.find(
      convolutions.empty() ? variant : convolutions[0].variant);
  if (described != record.variants.end()) {
    row.accuracy_class = described->second.accuracy_class;
    row.is_own = IsContributed(described->second);
    const auto found = FindAccuracyClass(row.accuracy_class);
    if (found) row.allowed = MaxChangedAnswers(*found);
  }
  for (const ConvolutionRecord& convolution : convolutions) {
    if (convolution.op_time_ns.empty()) continue;
    row.ms.push_back(Rounded(Median(convolution.op_time_ns) * 1e-6));
    row.gflop.push_back(Rounded(static_cast<double>(convolution.flops) * 1e-9));
    row.mb.push_back(
        Rounded(static_cast<double>(convolution.min_bytes) * 1e-6));
  }
  if (row.ms.empty() || row.ms.size() != convolutions.size()) return row;
  const Spread spread = SpreadOfSum(convolutions);
  if (spread.samples >= kSamplesForSpread) {
    row.low = Rounded(spread.low * 1e-6);
    row.high = Rounded(spread.high * 1e-6);
  }
  return row;
}

// The row of a run that is no ladder, with what its verification found.
Row RowOf(const RunRecord& record) {
  Row row =
      RowOf(record, VariantNames(record.convolutions), record.convolutions);
  row.correct = record.correct;
  row.wrong = record.count_error;
  for (const ConvolutionRecord& convolution : record.convolutions) {
    const auto described = record.variants.find(convolution.variant);
    if (described == record.variants.end()) continue;
    const auto& verification = described->second.verification;
    if (!verification) continue;
    row.error = std::max(row.error, Rounded(verification->relative_error));
    if (!IsRight(*verification)) row.wrong = verification->outcome;
    if (row.wrong.empty() && !verification->op_time_counts) {
      row.wrong = verification->op_time_note;
    }
  }
  return row;
}

Run RunOf(const NamedRecord& named, const std::string& folder) {
  const RunRecord& record = named.record;
  Run run;
  NameEntry(named.path, folder, run);
  DescribeEntry(record, run);
  run.milestone = record.milestone;
  run.network = record.network;
  run.count_error = record.count_error;
  run.images = record.size;
  run.expected = ExpectedCorrect(record);
  run.seconds = Rounded(static_cast<double>(record.usage.elapsed_ns) * 1e-9);
  // Times of traced runs are not shown, nor those that hold other layers.
  run.is_traced = record.profile.has_value();
  if (record.ladder.empty()) run.correct = record.correct;
  if (run.is_traced || record.fuses()) return run;
  if (!record.convolutions.empty()) run.rows.push_back(RowOf(record));
  for (const LadderRun& rung : record.ladder) {
    Row row = RowOf(record, rung.variant, rung.convolutions);
    row.failure = rung.failure;
    row.error = Rounded(rung.relative_error);
    row.correct = rung.correct;
    run.rows.push_back(std::move(row));
  }
  if (!record.peers.empty()) {
    Row row;
    row.variant = record.peers[0].library;
    row.accuracy_class = record.peers[0].accuracy_class;
    row.error = Rounded(record.peers[0].relative_error);
    row.is_library = true;
    for (const PeerRecord& peer : record.peers) {
      row.ms.push_back(Rounded(Median(peer.kernel_time_ns) * 1e-6));
    }
    if (!run.rows.empty()) {  // the same work as ours
      row.gflop = run.rows[0].gflop;
      row.mb = run.rows[0].mb;
    }
    run.rows.push_back(std::move(row));
  }
  return run;
}

// Every text on one line, without characters that change how others are read.
void MakePrintable(json_fields::Json& json) {
  if (json.is_string()) json = OneLine(json.get_ref<const std::string&>());
  if (!json.is_structured()) return;
  for (json_fields::Json& inner : json) MakePrintable(inner);
}

}  // namespace

double Rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale =
      std::pow(10, 4 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

std::string ToText(json_fields::Json json) {
  MakePrintable(json);
  return absl::StrReplaceAll(
      json.dump(-1, ' ', /*ensure_ascii=*/true,
                json_fields::Json::error_handler_t::replace),
      {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

std::vector<PageEntry> EntriesOf(const Records& records) {
  std::vector<PageEntry> entries;
  const auto begin = [&](const auto& record) -> PageEntry& {
    PageEntry& entry = entries.emplace_back();
    entry.started = record.started;
    entry.machine = record.device == "gpu" ? record.gpu.name : record.host.cpu;
    return entry;
  };
  for (const NamedRecord& named : records.runs) {
    Run run = RunOf(named, records.folder);
    begin(named.record).values.emplace_back("runs", Encoded(run));
  }
  for (const NamedBench& named : records.benches) {
    AddValues(named, records.folder, begin(named.record));
  }
  for (const NamedNetworks& named : records.networks) {
    AddValues(named, records.folder, begin(named.record));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const PageEntry& a, const PageEntry& b) {
                     return a.started > b.started;
                   });
  return entries;
}

std::string PeaksOf(const std::vector<std::string>& machines) {
  std::map<std::string, Peaks> peaks;
  for (const std::string& machine : machines) {
    const std::optional<Rates> rates = DataSheetRates(machine);
    if (!rates) continue;
    peaks[OneLine(machine)] = {rates->memory_gbs, rates->fp32_tflops,
                               ClassTflops(AccuracyClass::kFp32, *rates),
                               ClassTflops(AccuracyClass::kFp16, *rates)};
  }
  return Encoded(peaks);
}

}  // namespace convlab
