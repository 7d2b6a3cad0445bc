#include "milestones/classifying/plan_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"
#include "common/weights/parameters.h"

namespace convlab {
namespace {

constexpr double kFloat = sizeof(float);

// Of all layers of the stage, as if each ran alone.
double LayerBytes(const Network& network, const Stage& stage, int64_t images) {
  const std::vector<TensorShape> shapes = network.Shapes();
  double floats = 0;
  for (size_t i = stage.first; i < stage.end; ++i) {
    floats += static_cast<double>(images) *
              (shapes[i].values() + shapes[i + 1].values());
  }
  for (const LayerParameters& parameters : ParametersOf(network)) {
    if (parameters.layer < stage.first || parameters.layer >= stage.end) {
      continue;
    }
    double weights = 1;
    for (const int64_t n : parameters.weight_shape) weights *= n;
    floats += weights + (parameters.has_bias ? parameters.weight_shape[0] : 0);
  }
  return floats * kFloat;
}

std::string NameOf(const Network& network, const Stage& stage) {
  std::vector<std::string> names;
  for (size_t i = stage.first;
       i < stage.first + std::max<size_t>(stage.linear, 1); ++i) {
    names.push_back(LayerName(network, i));
  }
  return absl::StrJoin(names, ", ");
}

StageReport Total(const PlanReport& report) {
  StageReport total = {"all", "", {}, 0, 0, 0, 0, 0, 0, 0};
  for (const StageReport& stage : report.stages) {
    total.layer_flops += stage.layer_flops;
    total.flops += stage.flops;
    total.layer_bytes += stage.layer_bytes;
    total.bytes += stage.bytes;
    total.least_bytes += stage.least_bytes;
    total.ns += stage.ns;
    total.floor_ns += stage.floor_ns;
  }
  return total;
}

// What a stage does stands in a line of its own where terminals of 100 columns
// have no room for it.
std::string Row(const StageReport& stage, int name_width) {
  const std::string numbers = absl::StrFormat(
      "%-*s %9.3f %9.3f %9.1f %9.1f %9.1f %9.2f %9.2f  ", name_width,
      stage.name, stage.layer_flops * 1e-9, stage.flops * 1e-9,
      stage.layer_bytes * 1e-6, stage.bytes * 1e-6, stage.least_bytes * 1e-6,
      stage.ns * 1e-6, stage.floor_ns * 1e-6);
  const bool fits = numbers.size() + stage.does.size() <= 100;
  return absl::StrCat(numbers, fits ? "" : "\n    ", stage.does, "\n");
}

}  // namespace

PlanReport ReportPlan(const Network& network, const Plan& plan, int64_t images,
                      int image_size, const std::vector<int64_t>& stage_ns,
                      const std::vector<std::string>& kernels,
                      const std::string& device, const Rates& rates,
                      int64_t timed_images) {
  PlanReport report = {network.name, images, device, rates, {}, timed_images};
  const double count = static_cast<double>(images);
  const TensorShape image = {network.image_channels, network.image_size};
  const double pixels = count * image_size * image_size;
  const double enlarged = pixels + count * kFloat * image.values();
  report.stages.push_back(
      {"enlarge", "-", image, 0, 0, enlarged, enlarged, pixels, 0, 0});
  for (const Stage& stage : plan.stages) {
    const double parameters = plan.ParameterBytes(network, stage);
    report.stages.push_back(
        {NameOf(network, stage), Describe(network, stage), stage.output,
         count * plan.LayerFlops(stage), count * plan.Flops(stage),
         LayerBytes(network, stage, images),
         count * kFloat * (stage.input.values() + stage.output.values()) +
             parameters,
         parameters, 0, 0});
  }
  report.stages.back().least_bytes += count * kFloat * network.Classes();
  for (size_t i = 0; i < report.stages.size(); ++i) {
    StageReport& stage = report.stages[i];
    stage.ns = stage_ns[i];
    if (i < kernels.size() && !kernels[i].empty()) {
      absl::StrAppend(&stage.does, " [", kernels[i], "]");
    }
    stage.floor_ns = std::max(stage.flops / (*rates.fp32_tflops * 1e3),
                              stage.least_bytes / *rates.memory_gbs);
  }
  return report;
}

std::string PlanTable(const PlanReport& report) {
  size_t width = 7;
  for (const StageReport& stage : report.stages) {
    width = std::max(width, stage.name.size());
  }
  const int name_width = static_cast<int>(width);
  std::string text = absl::StrFormat(
      "Plan of %s for %d images on %s\n%-*s %9s %9s %9s %9s %9s %9s %9s  %s\n"
      "%-*s %9s %9s %9s %9s %9s %9s %9s\n",
      report.network, report.images, report.device, name_width, "stage",
      "GFLOP", "GFLOP", "MB", "MB", "MB", "ms", "ms", "what it does",
      name_width, "", "by layer", "plan", "by layer", "plan", "least", "time",
      "floor");
  for (const StageReport& stage : report.stages) {
    text += Row(stage, name_width);
  }
  text += Row(Total(report), name_width);
  absl::StrAppendFormat(
      &text,
      "MB: what the stages read and write; least: what memory must move, the "
      "images, the parameters once and the logits.\n"
      "Floor: operations and least bytes at the rates measured now, %.0f "
      "GFLOP/s and %.1f GB/s.\n",
      *report.rates.fp32_tflops * 1e3, *report.rates.memory_gbs);
  if (report.timed_images > 0 && report.timed_images != report.images) {
    absl::StrAppendFormat(&text,
                          "Time: that of %d images at a time, scaled to all.\n",
                          report.timed_images);
  }
  return text;
}

std::string PlanPicture(const PlanReport& report) {
  constexpr int kRow = 92, kTop = 100, kBars = 470, kBarsWidth = 330;
  const int stages = static_cast<int>(report.stages.size());
  const int height = kTop + stages * kRow + 44;
  double most_flops = 1, most_ns = 1;
  for (const StageReport& stage : report.stages) {
    most_flops = std::max(most_flops, stage.layer_flops);
    most_ns = std::max({most_ns, stage.ns, stage.floor_ns});
  }
  const StageReport total = Total(report);
  std::string svg = absl::StrFormat(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 %d" font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="14">
  <title>The plan of %s</title>
  <desc>Each stage of the compiled network, with its operations beside those layer by layer and its time beside its floor.</desc>
  <style>
    .stage { stroke-width: 1.5; fill: #dbeafe; stroke: #2f6fd0; }
    .title { font-weight: 600; font-size: 17px; fill: #1f2328; }
    .small { fill: #424a53; font-size: 12.5px; }
    .line { stroke: #848d97; stroke-width: 2; fill: none; }
    .label { fill: #848d97; font-size: 13px; font-style: italic; }
    .was { fill: #d0d7de; }
    .is { fill: #2f6fd0; }
    .floor { fill: #bf8700; }
  </style>
  <rect width="960" height="%d" fill="#ffffff"/>
  <text class="title" x="16" y="32">The plan of %s</text>
  <text class="small" x="16" y="54">%d images on %s: %.1f ms, %.1f GFLOP of %.1f layer by layer</text>
  <text class="label" x="%d" y="82">GFLOP: grey by layer, blue in the plan; ms: blue time, yellow floor</text>
)",
      height, EscapeMarkup(report.network), height,
      EscapeMarkup(report.network), report.images, EscapeMarkup(report.device),
      total.ns * 1e-6, total.flops * 1e-9, total.layer_flops * 1e-9, kBars);
  for (int i = 0; i < stages; ++i) {
    const StageReport& stage = report.stages[i];
    const int y = kTop + i * kRow;
    absl::StrAppendFormat(
        &svg,
        R"(  <rect class="stage" x="16" y="%d" width="420" height="64" rx="10"/>
  <text class="title" x="32" y="%d">%s</text>
  <text class="small" x="32" y="%d">%s</text>
)",
        y, y + 27, EscapeMarkup(stage.name), y + 49,
        stage.does == "-" ? "" : EscapeMarkup(stage.does));
    absl::StrAppendFormat(&svg,
                          R"(  <path class="line" d="M226 %dv%d"/>
  <text class="label" x="236" y="%d">%d x %d x %d</text>
)",
                          y + 64, kRow - 64, y + 83, stage.output.channels,
                          stage.output.size, stage.output.size);
    const auto bar = [&](const char* kind, int top, double share,
                         const std::string& text) {
      absl::StrAppendFormat(
          &svg,
          R"(  <rect class="%s" x="%d" y="%d" width="%.1f" height="13"/>
  <text class="small" x="%.1f" y="%d">%s</text>
)",
          kind, kBars, y + top, share * kBarsWidth,
          kBars + share * kBarsWidth + 8, y + top + 11, text);
    };
    bar("was", 0, stage.layer_flops / most_flops,
        absl::StrFormat("%.2f GFLOP", stage.layer_flops * 1e-9));
    bar("is", 15, stage.flops / most_flops,
        absl::StrFormat("%.2f GFLOP", stage.flops * 1e-9));
    bar("is", 34, stage.ns / most_ns,
        absl::StrFormat("%.1f ms", stage.ns * 1e-6));
    bar("floor", 49, stage.floor_ns / most_ns,
        absl::StrFormat("%.1f ms", stage.floor_ns * 1e-6));
  }
  absl::StrAppendFormat(&svg,
                        "  <text class=\"small\" x=\"196\" y=\"%d\">"
                        "labels</text>\n</svg>\n",
                        kTop + stages * kRow + 14);
  return svg;
}

}  // namespace convlab
