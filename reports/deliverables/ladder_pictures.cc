// The charts of the rungs that a submission compares.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "reports/deliverables/ladder_tables.h"
#include "reports/quantities.h"

namespace convlab {

std::vector<Contender> TimedOf(const std::vector<ComparedRow>& compared) {
  std::vector<Contender> contenders;
  for (const ComparedRow& row : compared) {
    if (row.failure.empty() && !row.contender.ns.empty()) {
      contenders.push_back(row.contender);
    }
  }
  return contenders;
}

Figure ComparedPicture(const Source& source, const RunRecord& ladder,
                       const LadderRows& rows,
                       const std::vector<ComparedRow>& compared) {
  const LadderRun* base = BaseOf(source, ladder);
  const std::string name = base == nullptr ? "" : base->variant;
  return {LadderChart(
              "ladder",
              absl::StrCat(ladder.network, ", ", Plural(ladder.size, "image"),
                           ", ", ladder.gpu.name),
              TimedOf(compared), name, rows),
          "Dots: the sum of the op times of each variant",
          Text("The sum of the op times of each variant") +
              (name.empty() ? Text(".")
                            : Text(", and how many times as fast as ") +
                                  Code(name) + " it is.")};
}

std::vector<Block> SpeedupPicture(const Source& source, const RunRecord& ladder,
                                  const std::vector<ComparedRow>& compared) {
  const LadderRun* base = BaseOf(source, ladder);
  if (base == nullptr || !base->failure.empty()) return {};
  return {Figure{SpeedupChart("speedups",
                              absl::StrCat("Speedups over ", base->variant,
                                           ", ", Plural(ladder.size, "image")),
                              TimedOf(compared), base->variant),
                 "Bars: how many times as fast as the base each variant is",
                 Text("The op times' sum of ") + Code(base->variant) +
                     " divided by that of each."}};
}

}  // namespace convlab
