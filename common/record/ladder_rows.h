// The ladder's table as numbers, derived from a run that compared variants. The
// milestone's transcript, the README and the submission print these rows, each
// in its own format.
#ifndef COMMON_RECORD_LADDER_ROWS_H_
#define COMMON_RECORD_LADDER_ROWS_H_

#include <optional>
#include <string>
#include <vector>

#include "common/record/run_record.h"

namespace convlab {

// Times of the network's convolutions, and how they compare.
struct LadderTimes {
  std::vector<double> ns;  // of each convolution
  double sum_ns = 0;
  // The speedup of the sum over the first variant's and the library's; absent
  // if those were not measured, and for themselves.
  std::optional<double> than_first, than_library;
};

// One variant.
struct LadderRow {
  const LadderRun* run = nullptr;
  const VariantRecord* variant = nullptr;
  // A step of the path that gets faster, not a specialty or a production kernel
  // apart from it; so are all rungs of older records, which know no tracks.
  bool is_lesson = true;
  // A participant's kernel, which stands beside the ladder, not in it.
  bool is_contributed = false;
  // The lesson before a lesson, if both were timed; otherwise null.
  const LadderRun* before = nullptr;
  // Absent if run->failure says why it was not timed.
  std::optional<LadderTimes> times;  // medians of the op times
  std::optional<double> than_before;
  double flops = 0;  // of the definition, all convolutions
  // The floor's sum divided by the times' sum, in the variant's own class.
  std::optional<double> floor_share;
};

// The library's best algorithm for each convolution.
struct PeerRow {
  const PeerRecord* first_layer = nullptr;  // names the library and its class
  LadderTimes times;                        // medians of kernel times
};

// The floor of one or several accuracy classes, by the GPU's data sheet.
struct FloorRow {
  std::string classes;  // "fp32", "tf32, fp16"
  LadderTimes times;
};

// Rows point into the record, which has to outlive them.
struct LadderRows {
  // Contributed kernels first, then the ladder's order.
  std::vector<LadderRow> rows;
  std::optional<PeerRow> library;
  std::vector<FloorRow> floors;  // of the classes that were timed
};

// Requires a record with a ladder whose variants are all described and whose
// timed runs have op times (reports/tables.h, CheckComplete).
LadderRows RowsOf(const RunRecord& record);

}  // namespace convlab

#endif  // COMMON_RECORD_LADDER_ROWS_H_
