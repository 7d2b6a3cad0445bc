// Tables of run records, as Markdown. Pure functions: the same records give the
// same text. Every record must be one that CheckComplete accepts.
#ifndef REPORTS_TABLES_H_
#define REPORTS_TABLES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/record/run_record.h"

namespace convlab {

// InvalidArgument, saying what is missing, unless the record holds
// convolutions, or a ladder of them, with op times and with their variants'
// descriptions.
absl::Status CheckDescribed(const RunRecord& record);

// The same, and InvalidArgument for a traced run, whose times must not be
// shown.
absl::Status CheckComplete(const RunRecord& record);

// One row per record, each of which ran one variant for all convolutions of the
// same network and size: op times, their sum, and the speedup of the sum over
// the row before and over the first. Rows are in the ladder's order.
std::string LadderTable(std::vector<RunRecord> records);

// One row per lesson of one run that compared variants (RunRecord::ladder), and
// one for the library: op times in ms, their sum, the speedup of the sum over
// the previous lesson and over the first, the error, and for a lesson that is
// slower than the previous one, why it is in the path.
std::string LessonsTable(const RunRecord& record);

// One row for each other variant of the run: track, op times in ms, their sum,
// the speedup over the first lesson and over the library, class, error and
// correct answers.
std::string OthersTable(const RunRecord& record);

// One row per record: network, images, correct answers, op times, program time
// and memory, the GPU's where
// the network ran there.
std::string NetworksTable(const std::vector<RunRecord>& records);

}  // namespace convlab

#endif  // REPORTS_TABLES_H_
