#include "reports/deliverables/charts.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/accuracy/accuracy.h"
#include "common/hardware/floor.h"
#include "common/record/statistics.h"
#include "reports/importers/listing.h"
#include "reports/quantities.h"
#include "reports/records/records.h"

namespace convlab {
namespace {

using drawing::DotPlot;
using drawing::Ink;
using drawing::KeyEntry;
using drawing::Shape;

// The mark of an accuracy class.
KeyEntry MarkOf(const std::string& accuracy_class) {
  const std::string name = "class " + accuracy_class;
  const std::optional<AccuracyClass> found = FindAccuracyClass(accuracy_class);
  if (!found || IsFloat32(*found)) return {name, Shape::kCircle, Ink::kBlue};
  if (*found == AccuracyClass::kTf32) {
    return {name, Shape::kSquare, Ink::kGreen};
  }
  return {name, Shape::kTriangle, Ink::kPurple};
}

// The index of the contender's mark in the key, to which it is added.
size_t SeriesOf(const Contender& contender, std::vector<KeyEntry>& key) {
  KeyEntry mark = MarkOf(contender.accuracy_class);
  if (contender.is_own) {
    mark = {absl::StrCat("contributed, ", mark.name), Shape::kDiamond,
            Ink::kOrange};
  }
  for (size_t i = 0; i < key.size(); ++i) {
    if (key[i].name == mark.name) return i;
  }
  key.push_back(mark);
  return key.size() - 1;
}

std::string LadderTitle(const RunRecord& ladder) {
  return absl::StrCat(ladder.network, ", ", Plural(ladder.size, "image"), ", ",
                      DeviceOf(ladder));
}

std::string TimeText(double ns) {
  return absl::StrCat(drawing::Number(ns * 1e-6), " ms");
}

// 2 digits are enough beside a mark.
std::string SpeedupText(double ratio) {
  return ratio < 9.95 ? absl::StrFormat("%.2f×", ratio)
                      : absl::StrFormat("%.1f×", ratio);
}

// Draws those of `all` that are in `shown`, on an axis for all.
Chart DrawLadder(const std::string& name, const std::string& title,
                 const std::vector<Contender>& all,
                 const std::vector<Contender>& shown, const std::string& base,
                 const LadderRows& rows) {
  DotPlot plot;
  plot.title = title;
  plot.axis = "sum of the op times, ms (logarithmic)";
  double base_ns = 0;
  for (const Contender& one : all) {
    if (one.name == base) base_ns = one.sum_ns();
    const double ms = one.sum_ns() * 1e-6;
    if (plot.least == 0 || ms < plot.least) plot.least = ms;
    plot.most = std::max(plot.most, ms);
  }
  std::string least_name;
  double least = 0;
  for (const Contender& one : shown) {
    const double sum = one.sum_ns();
    if (least == 0 || sum < least) {
      least = sum;
      least_name = one.name;
    }
    std::string beside = TimeText(sum);
    if (base_ns > 0 && one.name != base) {
      absl::StrAppend(&beside, ", ", SpeedupText(base_ns / sum));
    }
    plot.rows.push_back(
        {one.name,
         {{SeriesOf(one, plot.series), sum * 1e-6,
           absl::StrCat(one.name, ": ", MillisecondsOf(one.ns), " = ",
                        Milliseconds(sum), " ms, class ", one.accuracy_class)}},
         beside,
         one.is_strong});
  }
  if (rows.library && rows.library->times.sum_ns > 0) {
    plot.references.push_back({rows.library->first_layer->library,
                               rows.library->times.sum_ns * 1e-6,
                               Ink::kOrange});
  }
  for (const FloorRow& floor : rows.floors) {
    plot.references.push_back({absl::StrCat("floor of ", floor.classes),
                               floor.times.sum_ns * 1e-6, Ink::kGreen});
  }
  plot.description = absl::StrCat(
      title, ": a dot for each of ",
      Plural(static_cast<int64_t>(shown.size()), "variant"),
      ", the sum of its op times",
      least > 0
          ? absl::StrCat("; the least is ", TimeText(least), " by ", least_name)
          : "");
  return MakeChart(name, plot);
}

// The variant that a whole ladder is compared with.
std::string FirstOf(const RunRecord& ladder) {
  for (const LadderRow& row : RowsOf(ladder).rows) {
    if (row.times && !row.is_contributed) return row.run->variant;
  }
  return "";
}

}  // namespace

double Contender::sum_ns() const {
  return std::accumulate(ns.begin(), ns.end(), 0.0);
}

std::vector<Contender> ContendersOf(const RunRecord& ladder) {
  std::vector<Contender> contenders;
  Contender* best = nullptr;
  const LadderRows rows = RowsOf(ladder);
  contenders.reserve(rows.rows.size());
  for (const LadderRow& row : rows.rows) {
    if (!row.times) continue;
    Contender& one = contenders.emplace_back();
    one.name = row.run->variant;
    one.accuracy_class = row.variant->accuracy_class;
    one.is_own = one.is_strong = row.is_contributed;
    one.is_apart = !row.is_lesson && !row.is_contributed;
    one.ns = row.times->ns;
    for (const ConvolutionRecord& convolution : row.run->convolutions) {
      one.flops.push_back(static_cast<double>(convolution.flops));
      one.bytes.push_back(static_cast<double>(convolution.min_bytes));
    }
    if (one.accuracy_class == "fp32" &&
        (best == nullptr || one.sum_ns() < best->sum_ns())) {
      best = &one;
    }
  }
  if (best != nullptr) best->is_strong = true;
  return contenders;
}

Chart LadderChart(const std::string& name, const std::string& title,
                  const std::vector<Contender>& contenders,
                  const std::string& base, const LadderRows& rows) {
  return DrawLadder(name, title, contenders, contenders, base, rows);
}

Chart LadderChart(const std::string& name, const RunRecord& ladder) {
  return LadderChart(name, LadderTitle(ladder), ContendersOf(ladder),
                     FirstOf(ladder), RowsOf(ladder));
}

std::vector<Chart> LadderCharts(const std::string& name,
                                const RunRecord& ladder) {
  constexpr size_t kLong = 16;
  const std::vector<Contender> all = ContendersOf(ladder);
  std::vector<Contender> path, apart;
  for (const Contender& one : all) {
    (one.is_apart ? apart : path).push_back(one);
  }
  if (all.size() < kLong || path.empty() || apart.empty()) {
    return {LadderChart(name, ladder)};
  }
  const LadderRows rows = RowsOf(ladder);
  const std::string title = LadderTitle(ladder), first = FirstOf(ladder);
  return {DrawLadder(name, absl::StrCat("Lessons: ", title), all, path, first,
                     rows),
          DrawLadder(name + "-apart", absl::StrCat("Apart from them: ", title),
                     all, apart, first, rows)};
}

Chart SpeedupChart(const std::string& name, const std::string& title,
                   const std::vector<Contender>& contenders,
                   const std::string& base) {
  drawing::BarPlot plot;
  plot.title = title;
  plot.axis = absl::StrCat("times as fast as ", base);
  double base_ns = 0;
  for (const Contender& one : contenders) {
    if (one.name == base) base_ns = one.sum_ns();
  }
  double most = 0;
  for (const Contender& one : contenders) {
    const double ratio = base_ns / one.sum_ns();
    most = std::max(most, ratio);
    plot.bars.push_back(
        {one.name, ratio, SpeedupText(ratio),
         one.is_own         ? Ink::kOrange
         : one.name == base ? Ink::kGrey
                            : MarkOf(one.accuracy_class).ink,
         absl::StrCat(one.name, ": ", TimeText(one.sum_ns()), ", ",
                      SpeedupText(ratio), ", class ", one.accuracy_class)});
  }
  plot.description = absl::StrCat(
      title, ": a bar for each variant, how many times as fast as ", base,
      " it is; the most is ", SpeedupText(most));
  return MakeChart(name, plot);
}

Chart RooflineChart(const std::string& name, const std::string& title,
                    const std::vector<Contender>& contenders,
                    const Rates& peaks) {
  drawing::RoofPlot plot;
  plot.title = title;
  plot.description = absl::StrCat(
      title,
      ": roofline, FLOP per second of each variant against FLOP per byte, "
      "under the GPU's limits");
  plot.x_axis = "FLOP per byte that must move";
  plot.y_axis = "TFLOP/s";
  for (const Contender& one : contenders) {
    for (size_t i = 0; i < one.ns.size(); ++i) {
      if (one.ns[i] <= 0 || one.bytes[i] <= 0) continue;
      const double rate = one.flops[i] / one.ns[i] * 1e-3;
      const double intensity = one.flops[i] / one.bytes[i];
      plot.points.push_back(
          {one.name, SeriesOf(one, plot.series), intensity, rate, one.is_strong,
           absl::StrFormat("%s, convolution %d: %.2f TFLOP/s at %.1f FLOP/byte",
                           one.name, i + 1, rate, intensity)});
      if (plot.columns.size() <= i) {
        plot.columns.emplace_back(absl::StrCat("conv. ", i + 1), intensity);
      }
    }
  }
  plot.slope = peaks.memory_gbs.value_or(1) * 1e-3;
  plot.slope_name = absl::StrFormat("memory: %.2f TB/s", plot.slope);
  const auto add_roof = [&](const std::optional<double>& tflops,
                            const char* what) {
    if (!tflops) return;
    plot.roofs.push_back({absl::StrFormat("%s: %.0f", what, *tflops), *tflops});
  };
  add_roof(ClassTflops(AccuracyClass::kFp16, peaks), "tensor cores, halves");
  add_roof(ClassTflops(AccuracyClass::kFp32, peaks), "class fp32 by halves");
  add_roof(peaks.fp32_tflops, "float32 units");
  return MakeChart(name, plot);
}

Chart CurvesChart(const std::string& name, const std::string& title,
                  const std::string& quantity, const std::string& unit,
                  const std::vector<Curve>& curves) {
  drawing::LinePlot plot;
  plot.title = title;
  plot.description = absl::StrCat(title, ": ", quantity, " in ", unit,
                                  " against the number of images");
  plot.x_axis = "images (logarithmic)";
  plot.y_axis = absl::StrCat(quantity, ", ", unit, " (logarithmic)");
  constexpr Ink kInks[] = {Ink::kBlue, Ink::kOrange, Ink::kGreen, Ink::kPurple};
  constexpr Shape kShapes[] = {Shape::kCircle, Shape::kSquare, Shape::kTriangle,
                               Shape::kDiamond};
  for (size_t i = 0; i < curves.size(); ++i) {
    drawing::LinePlot::Curve& curve = plot.curves.emplace_back();
    curve.name = curves[i].title;
    curve.ink = kInks[i % std::size(kInks)];
    curve.shape = kShapes[i % std::size(kShapes)];
    curve.is_dashed = i >= std::size(kInks);
    for (const auto& [images, value] : curves[i].points) {
      curve.points.emplace_back(static_cast<double>(images), value);
    }
  }
  return MakeChart(name, plot);
}

std::string OthersOf(const ShareList& list) {
  return Plural(static_cast<int64_t>(list.entries - list.shares.size()),
                "other");
}

Chart ShareChart(const std::string& name, const std::string& title,
                 const ShareList& list) {
  drawing::BarPlot plot;
  plot.title = title;
  plot.axis = "share of the time, %";
  double others = 100 * list.listed;
  const auto add = [&](const std::string& label, double percent, Ink ink,
                       const std::string& more) {
    plot.bars.push_back(
        {label, std::max(percent, 0.0), absl::StrFormat("%.1f %%", percent),
         ink, absl::StrFormat("%s: %.2f %%%s", label, percent, more)});
  };
  for (const Share& share : list.shares) {
    const ProfileEntry& entry = share.entry;
    add(entry.name, 100 * share.share, Ink::kBlue,
        entry.total_ns
            ? ", " + FormatNanoseconds(static_cast<double>(*entry.total_ns))
            : "");
    others -= 100 * share.share;
  }
  if (list.entries > list.shares.size()) {
    add(OthersOf(list), others, Ink::kGrey, "");
  }
  plot.description =
      absl::StrCat(title, ": a bar for each entry, its share of the time",
                   plot.bars.empty()
                       ? ""
                       : absl::StrCat("; the largest is ", plot.bars[0].hover));
  return MakeChart(name, plot);
}

Chart LayersChart(const std::string& name, const std::string& title,
                  const std::string& peer,
                  const std::vector<ChartedLayer>& layers) {
  DotPlot plot;
  plot.title = title;
  plot.axis = "ms (logarithmic); beside: ours, and how many times as fast";
  plot.description = absl::StrCat(
      title, ": for each layer the time of our fastest kernel, of ",
      peer.empty() ? "the library" : peer, ", and the floor");
  plot.series = {{"ours", Shape::kCircle, Ink::kBlue}};
  const auto any = [&](std::optional<double> ChartedLayer::*time) {
    return std::any_of(
        layers.begin(), layers.end(),
        [&](const ChartedLayer& layer) { return (layer.*time).has_value(); });
  };
  const size_t peers = plot.series.size();
  if (any(&ChartedLayer::peer)) {
    plot.series.push_back({peer, Shape::kSquare, Ink::kOrange});
  }
  const size_t floors = plot.series.size();
  if (any(&ChartedLayer::floor)) {
    plot.series.push_back({"floor", Shape::kBar, Ink::kGreen});
  }
  for (const ChartedLayer& layer : layers) {
    DotPlot::Row& row = plot.rows.emplace_back();
    row.label = layer.layer;
    const auto add = [&](size_t series, double ms) {
      row.dots.push_back(
          {series, ms,
           absl::StrCat(layer.layer, ", ", plot.series[series].name, ": ",
                        absl::StrFormat("%.4f ms", ms))});
    };
    if (layer.floor) add(floors, *layer.floor);
    if (layer.peer) add(peers, *layer.peer);
    add(0, layer.ours);
    row.beside = drawing::Number(layer.ours);
    if (layer.peer) {
      absl::StrAppend(&row.beside, ", ", SpeedupText(*layer.peer / layer.ours));
    }
  }
  return MakeChart(name, plot);
}

drawing::StackPlot TimeParts(const RunRecord& record) {
  drawing::StackPlot plot;
  plot.title = absl::StrCat("Where the time of ", record.milestone, " goes, ",
                            Plural(record.size, "image"));
  const auto add = [&](const std::string& label, double ns) {
    if (ns <= 0) return;
    plot.parts.push_back(
        {label, ns * 1e-6,
         ns < 1e9 ? TimeText(ns) : absl::StrFormat("%.2f s", ns * 1e-9)});
  };
  double rest = static_cast<double>(record.usage.elapsed_ns);
  add("reading images and weights", static_cast<double>(record.load_ns));
  add("preparing the device", static_cast<double>(record.prepare_ns));
  rest -= static_cast<double>(record.load_ns + record.prepare_ns);
  double inference = 0;
  for (const int64_t ns : record.inference_ns) {
    inference += static_cast<double>(ns);
  }
  rest -= inference;
  for (size_t i = 0; i < record.convolutions.size(); ++i) {
    double ns = 0;
    for (const int64_t one : record.convolutions[i].op_time_ns) {
      ns += static_cast<double>(one);
    }
    add(absl::StrCat("convolution ", i + 1), ns);
    inference -= ns;
  }
  add("other layers and copies", inference);
  add(IsContributed(record) ? "compiling and judging the kernel, and the rest"
                            : "rest of the program",
      rest);
  plot.description = absl::StrCat(
      plot.title, ": one bar for the whole program, divided into its parts");
  return plot;
}

}  // namespace convlab
