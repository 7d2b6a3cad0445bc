// The documents' tables of accuracy: the worst output of each implementation on
// each family of data, by the contract of class fp32. Pure functions of the
// record of `bench --accuracy`.
#ifndef REPORTS_ACCURACY_TABLES_H_
#define REPORTS_ACCURACY_TABLES_H_

#include <string>

#include "absl/status/status.h"
#include "common/record/bench_record.h"

namespace convlab {

// InvalidArgument, naming the row, unless there are rows of accuracy, each with
// the same families and with what the contract allows.
absl::Status CheckAccuracy(const BenchRecord& record);

// A row for each implementation, a column for each family: the worst c, in bold
// where it breaks the contract.
std::string AccuracyTable(const BenchRecord& record);

// README's digest: a row for each family, and columns for our variants of class
// fp32, for those that are normwise, and for the library's plans of both.
std::string AccuracyDigest(const BenchRecord& record);

}  // namespace convlab

#endif  // REPORTS_ACCURACY_TABLES_H_
