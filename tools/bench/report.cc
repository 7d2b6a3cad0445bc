#include "tools/bench/report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/flags/flags.h"
#include "common/hardware/floor.h"
#include "common/record/statistics.h"
#include "common/status/status.h"

namespace convlab {
namespace {

// Text is truncated to the width of its column.
std::string Cut(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

// A library's name stands before its plan's.
std::string NarrowName(const std::string& provider,
                       const std::string& variant) {
  return provider == "convlab" || provider == kKernelProvider
             ? variant
             : absl::StrCat(provider, " ", variant);
}

// Formats the value with "%.0f", or an absent one as a dash.
std::string OrDash(const std::optional<double>& value, int digits,
                   const char* unit = "") {
  return value ? absl::StrFormat("%.*f%s", digits, *value, unit) : "-";
}

}  // namespace

void Report::Add(const NamedLayer& layer, const Measurement& m,
                 const Ceilings& ceilings) {
  const Problem& p = layer.problem;
  const double median_ns = Median(m.samples_ns);
  BenchRow row;
  row.layer = layer.name;
  if (!layer.neighbour_of.empty()) row.neighbour_of = layer.neighbour_of;
  row.batch = p.batch;
  row.channels = p.channels;
  row.height = p.height;
  row.width = p.width;
  row.filters = p.filters;
  row.kernel_size = p.kernel_size;
  row.provider = m.provider;
  row.variant = m.variant;
  row.accuracy_class = std::string(Name(m.accuracy));
  row.error = m.error;
  if (m.worst && IsFloat32(m.accuracy)) {
    row.worst_c = m.worst->factor;
    row.allowed_c = m.worst->allowed;
  }
  row.median_ms = median_ns * 1e-6;
  row.iqr_ms = InterquartileRange(m.samples_ns) * 1e-6;
  row.min_ms = Quantile(m.samples_ns, 0) * 1e-6;
  row.samples = static_cast<int>(m.samples_ns.size());
  row.sm_clock_mhz = m.sm_clock_mhz;
  row.tflops = p.flops() / median_ns * 1e-3;
  row.gbs = m.bytes / median_ns;
  if (options_.backend == Backend::kCpu && ceilings.fp32_tflops) {
    row.of_peak = row.tflops / *ceilings.fp32_tflops;
  }
  if (const std::optional<double> floor_ns =
          FloorNs(p.flops(), m.bytes, m.accuracy, RatesOf(ceilings))) {
    row.floor_ms = *floor_ns * 1e-6;
  }
  row.arguments = Arguments(options_, layer, m.provider, m.variant, m.accuracy);
  record_.rows.push_back(std::move(row));
}

void Report::Omit(const NamedLayer& layer, absl::string_view provider,
                  absl::string_view variant, AccuracyClass accuracy,
                  absl::string_view reason, bool failed) {
  record_.omissions.push_back({layer.name, layer.problem.batch,
                               std::string(provider), std::string(variant),
                               std::string(Name(accuracy)), OneLine(reason)});
  if (failed && failures_++ == 0) {
    first_failure_ = absl::StrCat(layer.name, " ", provider, " ", variant, ": ",
                                  record_.omissions.back().reason);
  }
}

int Report::LayerWidth() const {
  size_t width = sizeof("layer") - 1;
  for (const NamedLayer& layer : options_.layers) {
    width = std::max(width, layer.name.size());
  }
  return static_cast<int>(width);
}

void Report::PrintLayer() {
  const int width = LayerWidth();
  if (progress_shown_) std::fputs("\r\x1b[K", stderr);
  progress_shown_ = false;
  if (printed_rows_ == 0 && printed_omissions_ == 0) {
    absl::PrintF("%s\n", TableHead(options_.backend, width, options_.wide));
  }
  for (; printed_rows_ < record_.rows.size(); ++printed_rows_) {
    absl::PrintF("%s\n", OneLine(TableLine(record_, record_.rows[printed_rows_],
                                           width, options_.wide)));
  }
  for (; printed_omissions_ < record_.omissions.size(); ++printed_omissions_) {
    const BenchOmission& omission = record_.omissions[printed_omissions_];
    if (!options_.wide) {
      absl::PrintF("%-*s %6d %-18s %-13s not measured:\n    %s\n", width,
                   omission.layer, omission.batch,
                   Cut(NarrowName(omission.provider, omission.variant), 18),
                   omission.accuracy_class,
                   WrapText(OneLine(omission.reason), 4, 4));
      continue;
    }
    absl::PrintF("%-*s %6d %-8s %-22s %-13s not measured: %s\n", width,
                 omission.layer, omission.batch, omission.provider,
                 omission.variant, omission.accuracy_class,
                 OneLine(omission.reason));
  }
  std::fflush(stdout);
}

void Report::PrintNeighbours() const {
  absl::PrintF("\n%s", NeighboursTable(record_));
  std::fflush(stdout);
}

void Report::BeginLayer(const NamedLayer& layer) {
  // Sizes contain the batch.
  const bool sizes = absl::StrContains(layer.name, ',');
  Tell(absl::StrCat(layer.name,
                    sizes ? "" : absl::StrCat(" at ", layer.problem.batch),
                    ", ", ++layers_begun_, " of ", options_.layers.size()));
}

void Report::Progress(absl::string_view text) {
  // In a file, a line for each step would bury the rest.
  if (!isatty(STDERR_FILENO)) return;
  absl::FPrintF(stderr, "\r%s\x1b[K", text);
  progress_shown_ = true;
}

void Report::Tell(absl::string_view text) {
  if (progress_shown_) std::fputs("\r\x1b[K", stderr);
  progress_shown_ = false;
  absl::FPrintF(stderr, "bench: %s\n", text);
}

absl::Status Report::Outcome() const {
  if (failures_ == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(failures_, " failed, the first: ", first_failure_));
}

std::string Arguments(const BenchOptions& options, const NamedLayer& layer,
                      absl::string_view provider, absl::string_view variant,
                      AccuracyClass accuracy) {
  std::string arguments = absl::StrCat(
      "--device ", options.backend == Backend::kCuda ? "gpu" : "cpu",
      " --layers ", layer.name);
  // Sizes contain the batch.
  if (!absl::StrContains(layer.name, ',')) {
    absl::StrAppend(&arguments, " --batch ", layer.problem.batch);
  }
  for (const CompiledKernel& kernel : options.kernels) {
    if (provider == kKernelProvider && kernel.source.name == variant) {
      return absl::StrCat(arguments, " --kernel ", kernel.source.path);
    }
  }
  absl::StrAppend(&arguments, " --variants ",
                  provider == "convlab" ? variant : provider, " --class ",
                  Name(accuracy));
  if (!options.peers) absl::StrAppend(&arguments, " --nopeers");
  if (!options.ordinary_data()) {
    absl::StrAppend(&arguments, " --data ", options.data->name);
  }
  const StoppingRule usual;
  if (options.rule.min_samples != usual.min_samples) {
    absl::StrAppend(&arguments, " --samples ", options.rule.min_samples);
  }
  if (options.rule.max_seconds != usual.max_seconds) {
    absl::StrAppend(&arguments, " --seconds ", options.rule.max_seconds);
  }
  if (options.threads != 0) {
    absl::StrAppend(&arguments, " --threads ", options.threads);
  }
  return arguments;
}

std::string TableHead(Backend backend, int width, bool wide) {
  const bool gpu = backend == Backend::kCuda;
  if (!wide) {
    return absl::StrFormat("%-*s %6s %-18s %-13s %7s %9s %7s %6s %8s", width,
                           "layer", "batch", "variant", "class", "error",
                           "median ms", "TFLOP/s", "floor",
                           gpu ? "x cuDNN" : "x oneDNN");
  }
  return absl::StrFormat(
      "%-*s %6s %-8s %-22s %-13s %7s %6s %10s %8s %10s %3s %5s %8s %6s %6s %8s "
      " %s",
      width, "layer", "batch", "provider", "variant", "class", "error", "c",
      "median ms", "IQR ms", "min ms", "n", gpu ? "MHz" : "peak", "TFLOP/s",
      "GB/s", "floor", gpu ? "x cuDNN" : "x oneDNN", "arguments");
}

std::string TableLine(const BenchRecord& record, const BenchRow& row, int width,
                      bool wide) {
  std::optional<double> floor_share = FloorShare(row);
  if (floor_share) *floor_share *= 100;
  if (!wide) {
    return absl::StrFormat(
        "%-*s %6d %-18s %-13s %7.1e %9.4f %7.2f %6s %8s", width, row.layer,
        row.batch, Cut(NarrowName(row.provider, row.variant), 18),
        row.accuracy_class, row.error, row.median_ms, row.tflops,
        OrDash(floor_share, 1, "%"), OrDash(PeerRatio(record, row), 2));
  }
  const std::string clock_or_peak =
      row.of_peak ? absl::StrFormat("%.1f%%", 100 * *row.of_peak)
                  : OrDash(row.sm_clock_mhz, 0);
  return absl::StrFormat(
      "%-*s %6d %-8s %-22s %-13s %7.1e %6s %10.4f %8.4f %10.4f %3d %5s %8.3f "
      "%6.1f "
      "%6s %8s  %s",
      width, row.layer, row.batch, row.provider, Cut(row.variant, 22),
      row.accuracy_class, row.error, OrDash(row.worst_c, 1), row.median_ms,
      row.iqr_ms, row.min_ms, row.samples, clock_or_peak, row.tflops, row.gbs,
      OrDash(floor_share, 1, "%"), OrDash(PeerRatio(record, row), 2),
      row.arguments);
}

std::string NeighboursTable(const BenchRecord& record) {
  std::string table = absl::StrFormat(
      "%-9s %-10s %-22s %-20s %10s %6s %7s %8s\n", "layer", "change",
      "neighbour", "variant", "median ms", "floor", "layer's", "quotient");
  const std::vector<Neighbour> neighbours = Neighbours(record);
  std::vector<std::string> behind;
  for (const Neighbour& neighbour : neighbours) {
    const BenchRow& row = *neighbour.row;
    // An entry with a quotient has both.
    const double share = *FloorShare(row);
    const double of_layer = *FloorShare(*neighbour.layer);
    absl::StrAppend(
        &table,
        absl::StrFormat("%-9s %-10s %-22s %-20s %10.4f %5.1f%% %6.1f%% %8.2f\n",
                        neighbour.layer->layer, neighbour.change, row.layer,
                        Cut(row.variant, 20), row.median_ms, 100 * share,
                        100 * of_layer, neighbour.quotient));
    if (neighbour.quotient < kLeastNeighbour) {
      behind.push_back(absl::StrFormat("%s %s (%.2f)", neighbour.layer->layer,
                                       neighbour.change, neighbour.quotient));
    }
  }
  absl::StrAppend(
      &table, neighbours.size() - behind.size(), " of ", neighbours.size(),
      " neighbours reach at least half the share of their floor "
      "that the layer reaches",
      behind.empty() ? "" : "; less: ", absl::StrJoin(behind, ", "), "\n");
  return table;
}

std::string CeilingsLine(const Ceilings& ceilings) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const std::optional<double>& value,
                       const char* unit, int digits) {
    if (value) {
      parts.push_back(
          absl::StrFormat("%s %.*f %s", name, digits, *value, unit));
    }
  };
  add("fill", ceilings.fill_gbs, "GB/s", 0);
  add("copy", ceilings.copy_gbs, "GB/s", 0);
  add("triad", ceilings.triad_gbs, "GB/s", 1);
  add("fp32", ceilings.fp32_tflops, "TFLOP/s", 3);
  add("tf32", ceilings.tf32_tflops, "TFLOP/s", 0);
  add("fp16", ceilings.fp16_tflops, "TFLOP/s", 0);
  return absl::StrCat("ceilings: ", absl::StrJoin(parts, ", "));
}

}  // namespace convlab
