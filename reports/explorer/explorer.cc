#include "reports/explorer/explorer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/accuracy/accuracy.h"
#include "common/files/files.h"
#include "common/hardware/floor.h"
#include "common/json/json_fields.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "reports/document/page_style.h"
#include "reports/document/writers.h"
#include "reports/drawing/canvas.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

constexpr char kScript[] =
#include "reports/explorer/explorer_js.inc"
    ;
constexpr char kBody[] =
#include "reports/explorer/explorer_html.inc"
    ;

constexpr char kExplorerStyle[] = R"css(
.pair { display: flex; flex-wrap: wrap; gap: .5rem 1rem; }
label { display: inline-flex; gap: .4rem; align-items: center; max-width: 100%; }
select, input { font: inherit; max-width: 100%; min-width: 0; color: var(--ink);
  background-color: var(--paper); border: 1px solid; border-radius: 4px;
  border-color: var(--muted); padding: .15rem .3rem; }
.plot svg { display: block; max-width: 100%; }
)css";

// What the page needs of a variant in a run; times in ms, rounded.
struct Row {
  std::string variant, accuracy_class, failure;
  bool is_own = false;
  std::vector<double> ms, gflop, mb;  // of each convolution
  std::optional<double> low, high;    // quartiles of the sum
  double error = 0;
  int64_t correct = 0;
  int64_t allowed = 0;  // by how many more or less the class may differ
};

template <typename Visitor>
void Fields(Visitor& visit, Row& row) {
  visit("variant", row.variant);
  visit("class", row.accuracy_class);
  visit("failure", row.failure);
  visit("own", row.is_own);
  visit("ms", row.ms);
  visit("gflop", row.gflop);
  visit("mb", row.mb);
  visit("low", row.low);
  visit("high", row.high);
  visit("error", row.error);
  visit("correct", row.correct);
  visit("allowed", row.allowed);
}

struct Library {
  std::string name;
  std::vector<double> ms;
};

template <typename Visitor>
void Fields(Visitor& visit, Library& library) {
  visit("name", library.name);
  visit("ms", library.ms);
}

struct Run {
  std::string path, who, milestone, network, machine, started, revision,
      command, count_error;
  int64_t images = 0;
  std::optional<int64_t> correct, expected;
  double seconds = 0;
  bool is_traced = false;
  std::vector<Row> rows;
  std::optional<Library> library;
};

template <typename Visitor>
void Fields(Visitor& visit, Run& run) {
  visit("path", run.path);
  visit("who", run.who);
  visit("milestone", run.milestone);
  visit("network", run.network);
  visit("machine", run.machine);
  visit("started", run.started);
  visit("revision", run.revision);
  visit("command", run.command);
  visit("count_error", run.count_error);
  visit("images", run.images);
  visit("correct", run.correct);
  visit("expected", run.expected);
  visit("seconds", run.seconds);
  visit("traced", run.is_traced);
  visit("rows", run.rows);
  visit("library", run.library);
}

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

// Five digits, which keeps the page small.
double Rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale =
      std::pow(10, 4 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
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

Run RunOf(const NamedRecord& named, const std::string& folder) {
  const RunRecord& record = named.record;
  Run run;
  const std::filesystem::path below =
      std::filesystem::path(named.path).lexically_relative(UserPath(folder));
  run.path = below.empty() || below == "." ? named.path : below.string();
  if (below.has_parent_path() && !absl::StartsWith(run.path, "..")) {
    run.who = below.begin()->string();
  }
  run.milestone = record.milestone;
  run.network = record.network;
  run.machine = record.device == "gpu" ? record.gpu.name : record.host.cpu;
  run.started = record.started.substr(0, 16);
  run.revision = record.git_revision;
  run.count_error = record.count_error;
  run.images = record.size;
  run.expected = ExpectedCorrect(record);
  run.seconds = Rounded(static_cast<double>(record.usage.elapsed_ns) * 1e-9);
  // Times of traced runs are not shown, nor those that hold other layers.
  run.is_traced = record.profile.has_value();
  if (record.ladder.empty()) run.correct = record.correct;
  if (run.is_traced || record.fuses()) return run;
  if (!record.convolutions.empty()) {
    Row row =
        RowOf(record, VariantNames(record.convolutions), record.convolutions);
    row.correct = record.correct;
    run.rows.push_back(std::move(row));
  }
  for (const LadderRun& rung : record.ladder) {
    Row row = RowOf(record, rung.variant, rung.convolutions);
    row.failure = rung.failure;
    row.error = Rounded(rung.relative_error);
    row.correct = rung.correct;
    run.rows.push_back(std::move(row));
  }
  if (!record.peers.empty()) {
    Library& library = run.library.emplace();
    library.name = record.peers[0].library;
    for (const PeerRecord& peer : record.peers) {
      library.ms.push_back(Rounded(Median(peer.kernel_time_ns) * 1e-6));
    }
  }
  return run;
}

Peaks PeaksOf(const Rates& rates) {
  return {rates.memory_gbs, rates.fp32_tflops,
          ClassTflops(AccuracyClass::kFp32, rates),
          ClassTflops(AccuracyClass::kFp16, rates)};
}

// JSON as the content of an element: nothing in it can end the element.
std::string ToText(const json_fields::Json& json) {
  return absl::StrReplaceAll(
      json.dump(-1, ' ', /*ensure_ascii=*/true,
                json_fields::Json::error_handler_t::replace),
      {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

}  // namespace

Explorer MakeExplorer(const Records& records) {
  std::vector<const NamedRecord*> newest;
  for (const NamedRecord& run : records.runs) newest.push_back(&run);
  std::stable_sort(newest.begin(), newest.end(),
                   [](const NamedRecord* a, const NamedRecord* b) {
                     return a->record.started > b->record.started;
                   });
  const std::string style =
      absl::StrCat(drawing::LightRules(), PageStyle(), kExplorerStyle);
  Explorer explorer;
  size_t size = sizeof(kScript) + sizeof(kBody) + style.size() + 4000;
  std::string runs;
  std::map<std::string, Peaks> machines;
  for (const NamedRecord* named : newest) {
    Run run = RunOf(*named, records.folder);
    const std::string text = ToText(json_fields::Writer::Encode(run));
    if (size + text.size() > kLargestPage) break;
    size += text.size() + 2;
    absl::StrAppend(&runs, runs.empty() ? "" : ",\n", text);
    const std::optional<Rates> rates = DataSheetRates(run.machine);
    if (rates) machines[run.machine] = PeaksOf(*rates);
    ++explorer.shown;
  }
  explorer.left_out = newest.size() - explorer.shown;
  const std::string note = absl::StrCat(
      Plural(static_cast<int64_t>(explorer.shown), "record"), " of ",
      OneLine(records.folder),
      explorer.left_out == 0
          ? ""
          : absl::StrCat("; ", explorer.left_out,
                         " older ones left out, since the page would be larger "
                         "than 2 MB"),
      records.broken.empty()
          ? ""
          : absl::StrCat("; ", records.broken.size(), " files are no records"),
      ".");
  explorer.html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>Records of convolutions</title>\n<link "
      "rel=\"icon\" href=\"data:,\">\n<style>",
      style,
      "</style>\n</head>\n<body>\n<main>\n<h1>Records of convolutions"
      "</h1>\n<p>",
      EscapeHtml(note), "</p>\n", kBody,
      "</main>\n<script type=\"application/json\" id=\"data\">{\"runs\":[",
      runs, "],\n\"machines\":", ToText(json_fields::Writer::Encode(machines)),
      "}</script>\n<script>", kScript, "</script>\n</body>\n</html>\n");
  return explorer;
}

}  // namespace convlab
