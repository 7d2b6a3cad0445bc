// Which entries of a profile make up most of its time: the course's lists of
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
  // From the largest share down, as far as the first that brings their sum over
  // the threshold; all of them if none does.
  std::vector<Share> shares;
  // How many entries the section has, and the sum of all their shares.
  size_t entries = 0;
  double listed = 0;
  bool exceeds = false;  // the threshold, which only a list of all may not
  // The tool's printed percentages: the times in the file are not all times.
  bool from_printed = false;
  // Entries without a time, which no list can hold.
  size_t without_time = 0;
};

// `threshold_percent` is exceeded by what is more than it: 90.0 does not exceed
// 90.
ShareList LargestShares(const ProfileSection& section,
                        double threshold_percent);

// What the list and its shares lack, in sentences for a reader; empty if
// nothing. `tool` printed the percentages.
std::vector<std::string> ShareNotes(const ProfileSection& section,
                                    const ShareList& list,
                                    const std::string& tool,
                                    double threshold_percent);

// The first of `entries` whose printed share does not fit its time at all,
// nullptr if there is none.
const ProfileEntry* FindContradiction(const std::vector<ProfileEntry>& entries);

// The time of which the entries' times are shares, in ns: their sum, or more
// where the printed shares, which do not make up 100 % then, say so.
double WholeTime(const std::vector<ProfileEntry>& entries);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_SHARES_H_
