// What the explorer's page needs of records, as JSON.
#ifndef REPORTS_EXPLORER_PAGE_DATA_H_
#define REPORTS_EXPLORER_PAGE_DATA_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/records/records.h"

namespace convlab {

// A record, as entries of the page's lists: "runs" (times of convolutions by
// variant, of a milestone's run or of a benchmark), "wholes" (a benchmark of
// whole networks) and "contracts" (the worst outputs by variant). Texts of JSON
// that may stand within an element of HTML.
struct PageEntry {
  std::string started, machine;
  std::vector<std::pair<const char*, std::string>> values;  // list, text
};

// One for each record, the newest first.
std::vector<PageEntry> EntriesOf(const Records& records);

// The peaks of these machines' data sheets, for those that have one.
std::string PeaksOf(const std::vector<std::string>& machines);

}  // namespace convlab

#endif  // REPORTS_EXPLORER_PAGE_DATA_H_
