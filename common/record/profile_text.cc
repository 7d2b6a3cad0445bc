#include "common/record/profile_text.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace convlab {
namespace {

constexpr char kRow[] = "%16s%9s%10s%10s%10s%10s%10s  %s\n";

template <typename T>
std::string TimeOrDash(const std::optional<T>& ns) {
  return ns.has_value() ? ProfileTime(static_cast<double>(*ns)) : "-";
}

// The section's time, if all of its entries have one.
std::optional<double> Total(const ProfileSection& section) {
  double total = 0;
  for (const ProfileEntry& entry : section.entries) {
    if (!entry.total_ns.has_value()) return std::nullopt;
    total += static_cast<double>(*entry.total_ns);
  }
  return total;
}

// The share of the section's time; if the section is incomplete, the share that
// the tool printed.
std::string Share(const ProfileSection& section, const ProfileEntry& entry,
                  std::optional<double> total) {
  std::optional<double> share;
  if (total.has_value() && *total > 0) {
    share = static_cast<double>(*entry.total_ns) / *total;
  }
  if (entry.printed_share.has_value() &&
      (!share.has_value() || !section.missing.empty())) {
    share = entry.printed_share;
  }
  return share.has_value() ? absl::StrFormat("%.2f%%", 100 * *share) : "-";
}

void AppendSection(const char* type, const ProfileSection& section,
                   std::string& text) {
  const std::optional<double> total = Total(section);
  for (const ProfileEntry& entry : section.entries) {
    absl::StrAppend(
        &text, absl::StrFormat(
                   kRow, &entry == &section.entries.front() ? type : "",
                   Share(section, entry, total), TimeOrDash(entry.total_ns),
                   entry.calls.has_value() ? absl::StrCat(*entry.calls) : "-",
                   TimeOrDash(entry.average_ns), TimeOrDash(entry.min_ns),
                   TimeOrDash(entry.max_ns), OneLine(entry.name)));
  }
}

void AppendMissing(const char* type, const ProfileSection& section,
                   std::string& text) {
  if (section.missing.empty()) return;
  // nvprof's prefix of lines that are not rows.
  absl::StrAppend(&text, "== Warning: ", type,
                  section.entries.empty() ? " none: " : " not all: ",
                  OneLine(section.missing), "\n");
}

}  // namespace

std::string ProfileTime(double ns) {
  if (ns < 999.5) return absl::StrFormat("%.0fns", ns);
  double value = ns / 1000;
  for (const char* unit : {"us", "ms"}) {
    // Five digits, unless they round up to the next unit's 1.
    const int decimals = value < 10 ? 4 : value < 100 ? 3 : 2;
    if (value < 999.995)
      return absl::StrFormat("%.*f%s", decimals, value, unit);
    value /= 1000;
  }
  return absl::StrFormat("%.5fs", value);
}

std::string ProfileText(const Profile& profile) {
  std::string text = absl::StrFormat(kRow, "Type", "Time(%)", "Time", "Calls",
                                     "Avg", "Min", "Max", "Name");
  AppendSection("GPU activities:", profile.gpu_activities, text);
  AppendSection("API calls:", profile.api_calls, text);
  AppendMissing("GPU activities:", profile.gpu_activities, text);
  AppendMissing("API calls:", profile.api_calls, text);
  return text;
}

}  // namespace convlab
