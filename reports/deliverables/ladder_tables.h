// The ladder of a submission: the rungs that it discusses, what each is
// compared with, and their table and charts.
#ifndef REPORTS_DELIVERABLES_LADDER_TABLES_H_
#define REPORTS_DELIVERABLES_LADDER_TABLES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/record/ladder_rows.h"
#include "reports/deliverables/charts.h"
#include "reports/deliverables/deliverable.h"

namespace convlab {

// The run of that variant; nullptr if the ladder lacks it.
const LadderRun* RunOf(const RunRecord& ladder, absl::string_view variant);

// The rung that speedups refer to: Source::base, or the first that was timed.
const LadderRun* BaseOf(const Source& source, const RunRecord& ladder);

// A rung and what it is compared with: the base, if the source names one, or
// the chosen rung before; nullptr for the base itself.
struct ChosenRung {
  const LadderRow* row = nullptr;
  const LadderRun* before = nullptr;
};
// The contributed kernels, then Source::optimizations. If that is empty and
// nothing is contributed: the first three rungs of class fp32 that are at least
// a tenth faster than all before them, or for the final report the next three.
std::vector<ChosenRung> ChosenRungs(const Source& source,
                                    const RunRecord& ladder,
                                    const LadderRows& rows, bool is_final);

// A row of the compared: a rung, our final run, or the best per layer.
struct ComparedRow {
  Contender contender;  // without times where it was not timed
  Text name, correct;
  std::string failure;
  std::optional<double> than_before, floor_share;
  std::optional<double> error;
};
// The chosen rungs, the base, the fastest rung, our final run and the best per
// layer, as far as they were timed with the ladder's images.
std::vector<ComparedRow> ComparedRows(const Source& source,
                                      const RunRecord& ladder,
                                      const LadderRows& rows,
                                      const std::vector<ChosenRung>& chosen);

// Those that were timed.
std::vector<Contender> TimedOf(const std::vector<ComparedRow>& compared);

// Their table, with the library and the floors, and their charts.
Table ComparedTable(const Source& source, const RunRecord& ladder,
                    const LadderRows& rows,
                    const std::vector<ComparedRow>& compared);
Figure ComparedPicture(const Source& source, const RunRecord& ladder,
                       const LadderRows& rows,
                       const std::vector<ComparedRow>& compared);

// How many times as fast as the base they are; nothing without a base.
std::vector<Block> SpeedupPicture(const Source& source, const RunRecord& ladder,
                                  const std::vector<ComparedRow>& compared);

// The final run on the GPU that counts, of a participant's kernel if there is
// one; nullptr without any.
const RunRecord* FinalRun(const Source& source);

// Parts of the appendix: all rungs, and the numbers of the roofline.
Deliverable AllRungs(const RunRecord& ladder, const LadderRows& rows);
Deliverable RooflineNumbers(const RunRecord& ladder,
                            const std::vector<ComparedRow>& compared);

// A section for each chosen rung: the course's questions, with what was
// measured.
std::vector<Deliverable> Optimizations(const Source& source,
                                       const RunRecord& ladder,
                                       const std::vector<ChosenRung>& chosen);

// "2.04 times as fast".
std::string AsFast(double ratio);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_LADDER_TABLES_H_
