#include "reports/importers/expectations.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "reports/importers/shares.h"
#include "reports/importers/test_files.h"

namespace convlab {
namespace {

bool SameNumbers(const ProfileEntry& a, const ProfileEntry& b) {
  return a.calls == b.calls && a.total_ns == b.total_ns &&
         a.average_ns == b.average_ns && a.min_ns == b.min_ns &&
         a.max_ns == b.max_ns;
}

// Whether `part` holds only entries of `whole`; a name may be truncated.
bool IsPartOf(const ProfileSection& part, const ProfileSection& whole) {
  return std::all_of(
      part.entries.begin(), part.entries.end(), [&](const ProfileEntry& entry) {
        return std::any_of(whole.entries.begin(), whole.entries.end(),
                           [&](const ProfileEntry& other) {
                             return absl::StartsWith(other.name, entry.name) &&
                                    SameNumbers(entry, other);
                           });
      });
}

bool IsPartOf(const LaunchCounters& part, const LaunchCounters& whole) {
  if (part.kernel != whole.kernel ||
      part.counters.size() > whole.counters.size()) {
    return false;
  }
  for (size_t i = 0; i < part.counters.size(); ++i) {
    if (part.counters[i].name != whole.counters[i].name ||
        part.counters[i].unit != whole.counters[i].unit ||
        part.counters[i].value != whole.counters[i].value) {
      return false;
    }
  }
  return true;
}

}  // namespace

Profile ParsedFile(const ParseFunction& parse, const std::string& name) {
  const auto profile = parse(TestFile(name));
  EXPECT_TRUE(profile.ok()) << name << ": " << profile.status();
  return profile.ok() ? *profile : Profile();
}

std::vector<std::string> Over90(const ProfileSection& section) {
  std::vector<std::string> list;
  for (const Share& share : LargestShares(section, 90).shares) {
    list.push_back(
        absl::StrFormat("%s %.2f", share.entry.name, share.cumulative * 100));
  }
  return list;
}

void ExpectNoCutGivesAWrongTable(const ParseFunction& parse,
                                 const std::string& name) {
  const std::string content = TestFile(name);
  const Profile whole = ParsedFile(parse, name);
  for (size_t size = 0; size < content.size(); ++size) {
    const auto cut = parse(absl::string_view(content).substr(0, size));
    if (!cut.ok()) {
      ASSERT_EQ(cut.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    ASSERT_LE(cut->launches.size(), whole.launches.size());
    for (size_t i = 0; i < cut->launches.size(); ++i) {
      ASSERT_TRUE(IsPartOf(cut->launches[i], whole.launches[i]))
          << name << ", " << size << " bytes, launch " << i;
    }
    // Entries that are computed from launches lack the missing launches.
    if (!cut->launches.empty()) continue;
    ASSERT_TRUE(IsPartOf(cut->gpu_activities, whole.gpu_activities) &&
                IsPartOf(cut->api_calls, whole.api_calls))
        << name << ", " << size << " bytes";
  }
}

std::string ErrorOf(const absl::StatusOr<Profile>& profile) {
  EXPECT_EQ(profile.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(absl::StrContains(profile.status().message(), "\n"));
  return std::string(profile.status().message());
}

}  // namespace convlab
