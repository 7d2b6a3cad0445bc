// Profiles as tables for a reader: the lists of those that together take more
// than a threshold, GPU activities and API calls apart, and the counters of
// launches. Pure functions: the same profiles give the same text.
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
// for terminals, shortens long ones; CSV and JSON hold names as the file does.
// CSV has one table of all lists and, where there are launches, one of all
// counters behind an empty line.
std::string FormatProfiles(const std::vector<NamedProfile>& profiles,
                           double threshold_percent, ListingFormat format);

// A kernel's name in at most `width` characters, at least 8: without unnamed
// namespaces; where it is still too long without the return type, then without
// its parameters, then with some template arguments only.
std::string ShortKernelName(absl::string_view name, size_t width);

// "119.68ms": a time with five digits, as nvprof prints it.
std::string FormatNanoseconds(double ns);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_LISTING_H_
