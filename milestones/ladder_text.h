// The table at the end of the fourth milestone's run.
#ifndef MILESTONES_LADDER_TEXT_H_
#define MILESTONES_LADDER_TEXT_H_

#include <string>

#include "common/record/run_record.h"

namespace convlab {

// A line per variant and one for the library, of at most 100 characters for up
// to two convolutions; what is longer goes on in further lines. For records as
// RowsOf (common/record/ladder_rows.h) takes them.
std::string LadderText(const RunRecord& record);

}  // namespace convlab

#endif  // MILESTONES_LADDER_TEXT_H_
