// Profiles as tables: the GPU activities and the API calls that together take
// more than a threshold, and the counters of launches. Pure functions: the same
// profiles give the same text.
#ifndef REPORTS_IMPORTERS_LISTING_H_
#define REPORTS_IMPORTERS_LISTING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/profile.h"

namespace convlab {

enum class ListingFormat { kText, kMarkdown, kCsv, kJson };

// "text", "md", "csv" or "json"; InvalidArgument for anything else.
absl::StatusOr<ListingFormat> ParseListingFormat(absl::string_view name);

struct NamedProfile {
  std::string name;  // of its file, as the user gave it
  Profile profile;
};

// Text and Markdown leave unnamed namespaces out of names, and text, which is
// for terminals, shortens long ones; CSV and JSON have the file's names. CSV
// has one table of all lists and, if there are launches, a table of all
// counters after an empty line.
std::string FormatProfiles(const std::vector<NamedProfile>& profiles,
                           double threshold_percent, ListingFormat format);

// "119.68ms": a time with five digits, as nvprof prints it.
std::string FormatNanoseconds(double ns);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_LISTING_H_
