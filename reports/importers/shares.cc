#include "reports/importers/shares.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace convlab {
namespace {

// Tools print shares to 0.1 or 0.01 %, and times to four digits or more.
constexpr double kHalfOfLastDigit = 0.0005;

// The tolerance by which the printed shares of a complete list may miss 100 %.
double SumRounding(const std::vector<ProfileEntry>& entries) {
  return std::min(kHalfOfLastDigit * static_cast<double>(entries.size()), 0.02);
}

double TimeSum(const std::vector<ProfileEntry>& entries) {
  double sum = 0;
  for (const ProfileEntry& entry : entries) {
    sum += static_cast<double>(entry.total_ns.value_or(0));
  }
  return sum;
}

}  // namespace

double WholeTime(const std::vector<ProfileEntry>& entries) {
  const double sum = TimeSum(entries);
  double printed_sum = 0;
  const ProfileEntry* largest = nullptr;
  for (const ProfileEntry& entry : entries) {
    printed_sum += entry.printed_share.value_or(0);
    if (entry.total_ns && entry.printed_share &&
        (largest == nullptr ||
         *entry.printed_share > *largest->printed_share)) {
      largest = &entry;
    }
  }
  if (largest == nullptr || *largest->printed_share <= 0) return sum;
  if (printed_sum > 1 - SumRounding(entries) - kHalfOfLastDigit) return sum;
  const double whole =
      static_cast<double>(*largest->total_ns) / *largest->printed_share;
  const double tolerance =
      kHalfOfLastDigit / *largest->printed_share + kHalfOfLastDigit;
  return sum < whole * (1 - tolerance) ? whole : sum;
}

const ProfileEntry* FindContradiction(
    const std::vector<ProfileEntry>& entries) {
  const double whole = WholeTime(entries);
  const double much = 0.005 + SumRounding(entries);
  for (const ProfileEntry& entry : entries) {
    if (whole <= 0 || !entry.total_ns || !entry.printed_share) continue;
    const double share = static_cast<double>(*entry.total_ns) / whole;
    if (std::abs(share - *entry.printed_share) > much) return &entry;
  }
  return nullptr;
}

ShareList LargestShares(const ProfileSection& section,
                        double threshold_percent) {
  ShareList list;
  list.entries = section.entries.size();
  const double whole = WholeTime(section.entries);
  const bool all_printed =
      std::all_of(section.entries.begin(), section.entries.end(),
                  [](const ProfileEntry& entry) {
                    return entry.printed_share.has_value();
                  });
  list.from_printed = all_printed && !section.entries.empty() &&
                      (whole == 0 || whole > TimeSum(section.entries));
  for (const ProfileEntry& entry : section.entries) {
    if (list.from_printed) {
      list.shares.push_back({entry, *entry.printed_share, 0});
    } else if (entry.total_ns) {
      const double total = static_cast<double>(*entry.total_ns);
      const double share = whole > 0 ? total / whole : 0;
      list.shares.push_back({entry, share, 0});
    } else {
      ++list.without_time;
    }
  }
  std::stable_sort(
      list.shares.begin(), list.shares.end(),
      [](const Share& a, const Share& b) { return a.share > b.share; });
  size_t kept = list.shares.size();
  for (size_t i = 0; i < list.shares.size(); ++i) {
    list.listed += list.shares[i].share;
    list.shares[i].cumulative = list.listed;
    // A sum of exactly 90 % does not exceed it.
    constexpr double kRounding = 1e-9;
    if (!list.exceeds && list.listed * 100 > threshold_percent + kRounding) {
      kept = i + 1;
      list.exceeds = true;
    }
  }
  list.shares.resize(kept);
  return list;
}

std::vector<std::string> ShareNotes(const ProfileSection& section,
                                    const ShareList& list,
                                    const std::string& tool,
                                    double threshold_percent) {
  std::vector<std::string> notes;
  if (!section.missing.empty() && !section.entries.empty()) {
    notes.push_back(section.missing);
  }
  if (list.from_printed) {
    notes.push_back(absl::StrFormat(
        "the times in the file are not all: shares are %s's printed "
        "percentages, of which the %d listed make up %.2f %%",
        tool, list.entries, list.listed * 100));
  }
  if (list.without_time > 0) {
    notes.push_back(
        absl::StrCat(list.without_time, " entries have no time in the file"));
  }
  if (!list.shares.empty() && !list.exceeds) {
    notes.push_back(absl::StrFormat(
        "all that is listed makes up %.2f %%, which does not exceed %g %%",
        list.listed * 100, threshold_percent));
  }
  return notes;
}

}  // namespace convlab
