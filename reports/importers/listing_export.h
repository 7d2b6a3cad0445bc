// Profiles for programs to read, CSV and JSON, and what these share with the
// formats for people (listing.cc).
#ifndef REPORTS_IMPORTERS_LISTING_EXPORT_H_
#define REPORTS_IMPORTERS_LISTING_EXPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/record/profile.h"
#include "reports/importers/listing.h"

namespace convlab {

inline std::string ToolName(const Profile& profile) {
  return absl::StrCat(profile.tool, profile.version.empty() ? "" : " ",
                      profile.version);
}

// The text for a section without entries.
inline std::string Missing(const ProfileSection& section) {
  return section.missing.empty() ? "none" : section.missing;
}

using Sections = std::vector<std::pair<const char*, const ProfileSection*>>;
inline Sections SectionsOf(const Profile& profile) {
  return {{"GPU activities", &profile.gpu_activities},
          {"API calls", &profile.api_calls}};
}

// As FormatProfiles.
std::string FormatCsv(const std::vector<NamedProfile>& profiles,
                      double threshold_percent);
std::string FormatJson(const std::vector<NamedProfile>& profiles,
                       double threshold_percent);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_LISTING_EXPORT_H_
