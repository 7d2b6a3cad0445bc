// The charts of a report, as data and script for gnuplot. They are legible on a
// phone and in print. Every number in them is also in a table of the report.
#ifndef REPORTS_DELIVERABLES_CHARTS_H_
#define REPORTS_DELIVERABLES_CHARTS_H_

#include <optional>
#include <string>
#include <vector>

#include "common/hardware/rates.h"
#include "common/record/run_record.h"
#include "reports/document/document.h"
#include "reports/importers/shares.h"

namespace convlab {

// A bar per timed variant, the sum of its op times; the library's time and the
// floors of the variants' accuracy classes by the GPU's data sheet as lines,
// where they are known.
Chart LadderChart(const std::string& name, const RunRecord& ladder);

// Lines over the number of images, both logarithmic: of a quantity in
// some unit. Some line has a point, and all values are positive.
struct Curve {
  std::string title;
  std::vector<std::pair<int64_t, double>> points;  // images, value
};
Chart CurvesChart(const std::string& name, const std::string& title,
                  const std::string& quantity, const std::string& unit,
                  const std::vector<Curve>& curves);

// A line of op times over the number of images, of one convolution or of one
// variant.
struct TimeCurve {
  std::string title;
  std::vector<std::pair<int64_t, double>> points;  // images, ns
};
Chart OpTimeChart(const std::string& name, const std::string& title,
                  const std::vector<TimeCurve>& curves);

// FLOP per second against FLOP per byte that must move: a point for each
// timed variant and convolution, labelled with the variant's rung, under lines
// for the peaks of the GPU's data sheet: its memory and, on the right, the
// arithmetic of single products, of class fp32 and of the float32 units.
Chart RooflineChart(const std::string& name, const RunRecord& ladder,
                    const Rates& peaks);

// Names the number of other entries: "3 others".
std::string OthersOf(const ShareList& list);

// A bar per entry of the list, and one for all others.
Chart ShareChart(const std::string& name, const std::string& title,
                 const ShareList& list);

// Three bars per layer, whose times are in ms: ours, the library's and the
// floor, on a logarithmic scale.
struct LayerTimes {
  std::string layer;
  double ours = 0;
  std::optional<double> peer, floor;
};
Chart LayersChart(const std::string& name, const std::string& title,
                  const std::string& peer,
                  const std::vector<LayerTimes>& layers);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_CHARTS_H_
