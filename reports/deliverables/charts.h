// The charts of a report, drawn from records (reports/drawing). Every number in
// them is also in a table of the report.
#ifndef REPORTS_DELIVERABLES_CHARTS_H_
#define REPORTS_DELIVERABLES_CHARTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/hardware/rates.h"
#include "common/record/ladder_rows.h"
#include "common/record/run_record.h"
#include "reports/document/document.h"
#include "reports/drawing/plots.h"
#include "reports/importers/shares.h"

namespace convlab {

// Draws a plot at both widths.
template <typename Plot>
Chart MakeChart(const std::string& name, const Plot& plot) {
  return {name, Draw(plot, drawing::kWide), Draw(plot, drawing::kNarrow)};
}

// One way to compute the network's convolutions, and its op times.
struct Contender {
  std::string name;
  std::string accuracy_class;
  std::vector<double> ns;     // of each convolution
  std::vector<double> flops;  // likewise, and of the tensors
  std::vector<double> bytes;
  bool is_own = false;     // a participant's kernel
  bool is_strong = false;  // the best, or what the chart is about
  bool is_apart = false;   // a rung apart from the ladder's path of lessons

  double sum_ns() const;
};

// The timed variants of the ladder, contributed ones first; the fastest of
// class fp32 is strong.
std::vector<Contender> ContendersOf(const RunRecord& ladder);

// A dot for each, the sum of its op times; beside it the sum and the speedup
// over the one named `base`, if that is among them. The library's time and the
// floors are vertical lines where they are known.
Chart LadderChart(const std::string& name, const std::string& title,
                  const std::vector<Contender>& contenders,
                  const std::string& base, const LadderRows& rows);
// The same of the whole ladder, against its first variant.
Chart LadderChart(const std::string& name, const RunRecord& ladder);
// A long ladder in two charts, which fill pages better, with the same axis: the
// path of lessons, and the rungs apart from it.
std::vector<Chart> LadderCharts(const std::string& name,
                                const RunRecord& ladder);

// A bar from zero for each, how many times as fast as the one named `base` it
// is, which is among them.
Chart SpeedupChart(const std::string& name, const std::string& title,
                   const std::vector<Contender>& contenders,
                   const std::string& base);

// FLOP per second against FLOP per byte that must move: a named point for each
// contender and convolution, under the peaks of the GPU's data sheet.
Chart RooflineChart(const std::string& name, const std::string& title,
                    const std::vector<Contender>& contenders,
                    const Rates& peaks);

// Lines over the number of images, both axes logarithmic: of a quantity in some
// unit. Some line has a point, and all values are positive.
struct Curve {
  std::string title;
  std::vector<std::pair<int64_t, double>> points;  // images, value
};
Chart CurvesChart(const std::string& name, const std::string& title,
                  const std::string& quantity, const std::string& unit,
                  const std::vector<Curve>& curves);

// "3 others": the number of entries that the list leaves out.
std::string OthersOf(const ShareList& list);

// A bar per entry of the list, and one for all others.
Chart ShareChart(const std::string& name, const std::string& title,
                 const ShareList& list);

// Three dots per layer, whose times are in ms: ours, the library's and the
// floor.
struct ChartedLayer {
  std::string layer;
  double ours = 0;
  std::optional<double> peer, floor;
};
Chart LayersChart(const std::string& name, const std::string& title,
                  const std::string& peer,
                  const std::vector<ChartedLayer>& layers);

// Where the time of a whole run goes: loading, preparing, each convolution, the
// other layers and the rest of the program.
drawing::StackPlot TimeParts(const RunRecord& record);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_CHARTS_H_
