// Records for tests of reports: small, with numbers that are easy to check.
#ifndef REPORTS_RECORDS_TEST_RECORDS_H_
#define REPORTS_RECORDS_TEST_RECORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/record/run_record.h"
#include "reports/records/records.h"

namespace convlab {

inline constexpr int64_t kMs = 1000000;  // ns

// A run on "NVIDIA H200" or on "A CPU" with two convolutions by `variant`,
// whose op times are 1 and 3 ms for each 1000 images, in three samples.
RunRecord TestRecord(const std::string& milestone, const std::string& device,
                     int64_t size, const std::string& variant);

// The same record as a program writes it that verified its variants: each is
// right in its class, and what was printed is left out.
RunRecord Verified(RunRecord record);

// A run of `Verified` on a contributed kernel of this name.
RunRecord Contributed(RunRecord record, const std::string& name);

// A run of the ladder: `naive` as above, `fast` at a quarter of its times,
// `slow` at twice `fast`'s, and `odd`, which was rejected; beside the library
// at 2 ms for each convolution.
RunRecord TestLadder(int64_t size);

// The same record with a profile in which `NaiveKernel` takes 80 %, a copy 15 %
// and a third 5 % of the GPU's time, and the longest call of cudaFree made the
// context. It was traced to m.trace.json.
RunRecord Traced(RunRecord record);

// One launch, as read from ncu's CSV.
Profile TestCounters(const std::string& kernel, double dram_percent,
                     double sm_percent);

// All records that the final report needs, of network fa19.
Records CompleteRecords();

}  // namespace convlab

#endif  // REPORTS_RECORDS_TEST_RECORDS_H_
