// The properties that every fuzz target of an importer requires of its result.
#ifndef REPORTS_IMPORTERS_FUZZ_CHECK_H_
#define REPORTS_IMPORTERS_FUZZ_CHECK_H_

#include <cmath>
#include <cstdlib>

#include "absl/status/statusor.h"
#include "common/record/profile.h"
#include "common/record/run_record.h"
#include "reports/importers/import.h"
#include "reports/importers/listing.h"
#include "reports/importers/shares.h"

namespace convlab {

inline void Require(bool property) {
  if (!property) std::abort();
}

inline void RequireSound(const ProfileSection& section) {
  for (const ProfileEntry& entry : section.entries) {
    Require(!entry.name.empty());
    Require(entry.total_ns.value_or(0) >= 0 && entry.calls.value_or(1) > 0);
    Require(std::isfinite(entry.average_ns.value_or(0)));
  }
  double before = 1;
  for (const Share& share : LargestShares(section, 90).shares) {
    Require(share.share >= 0 && share.share <= before);
    before = share.share;
  }
}

// An importer's result is either a sound profile, which survives being
// recorded, or InvalidArgument with a message of one line.
inline void RequireSound(const absl::StatusOr<Profile>& profile) {
  if (!profile.ok()) {
    Require(absl::IsInvalidArgument(profile.status()));
    Require(profile.status().message().find('\n') == absl::string_view::npos);
    return;
  }
  RequireSound(profile->gpu_activities);
  RequireSound(profile->api_calls);
  for (const ListingFormat format :
       {ListingFormat::kText, ListingFormat::kMarkdown, ListingFormat::kCsv,
        ListingFormat::kJson}) {
    Require(!FormatProfiles({{"file", *profile}}, 90, format).empty());
  }
  RunRecord record;
  record.profile = *profile;
  const std::string json = ToJson(record);
  const auto again = ParseProfile(json);
  Require(again.ok());
  record.profile = *again;
  Require(ToJson(record) == json);
}

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_FUZZ_CHECK_H_
