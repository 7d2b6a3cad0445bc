// The entries of a profile that make up most of its time: the course's lists of
// kernels and API calls that together take more than 90 %.
#ifndef REPORTS_IMPORTERS_SHARES_H_
#define REPORTS_IMPORTERS_SHARES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "common/record/profile.h"

namespace convlab {

struct Share {
  ProfileEntry entry;
  double share = 0;       // of the section's time, 0 to 1
  double cumulative = 0;  // of this entry and all before it
};

struct ShareList {
  // In descending order, up to the first entry that brings the sum over the
  // threshold; all entries if none does.
  std::vector<Share> shares;
  // How many entries the section has, and the sum of all their shares.
  size_t entries = 0;
  double listed = 0;
  bool exceeds =
      false;  // more than the threshold, unless the list has all entries
  // Whether shares are the tool's printed percentages, because the file does
  // not have all times.
  bool from_printed = false;
  // Entries without a time, which no list can hold.
  size_t without_time = 0;
};

// A sum must be greater than `threshold_percent`: 90.0 does not exceed 90.
ShareList LargestShares(const ProfileSection& section,
                        double threshold_percent);

// Sentences about what the list and its shares lack; empty if nothing. `tool`
// printed the percentages.
std::vector<std::string> ShareNotes(const ProfileSection& section,
                                    const ShareList& list,
                                    const std::string& tool,
                                    double threshold_percent);

// The first entry whose printed share contradicts its time; nullptr if there is
// none.
const ProfileEntry* FindContradiction(const std::vector<ProfileEntry>& entries);

// The total time in ns to which shares refer: the sum of the entries' times, or
// more if the printed shares do not add up to 100 %.
double WholeTime(const std::vector<ProfileEntry>& entries);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_SHARES_H_
