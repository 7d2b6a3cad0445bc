// All records of a folder as one page that needs nothing else: its reader
// chooses network, machine, variant and participant, and sees the ladder, the
// roofline, the times over the batch, the accuracy, whole networks, and two
// records side by side.
#ifndef REPORTS_EXPLORER_EXPLORER_H_
#define REPORTS_EXPLORER_EXPLORER_H_

#include <cstddef>
#include <string>

#include "reports/records/records.h"

namespace convlab {

// The largest page, in bytes.
inline constexpr size_t kLargestPage = 2'000'000;

struct Explorer {
  std::string html;
  size_t shown = 0, left_out = 0;  // records
};

// Of more records than fit, the oldest are left out, which the page says.
Explorer MakeExplorer(const Records& records);

}  // namespace convlab

#endif  // REPORTS_EXPLORER_EXPLORER_H_
