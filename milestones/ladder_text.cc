#include "milestones/ladder_text.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/flags/flags.h"
#include "common/record/ladder_rows.h"
#include "common/record/statistics.h"

namespace convlab {
namespace {

constexpr int kNameWidth = 17;  // of our variants' longest name

// The name in its column; a longer one, a participant's, has a line of its own.
std::string NameText(const std::string& name) {
  return absl::StrFormat(
      "%-*s", kNameWidth,
      name.size() > kNameWidth
          ? absl::StrCat(name, "\n", std::string(kNameWidth, ' '))
          : name);
}

// "12.30x", or a dash if there is nothing to compare with.
std::string Ratio(const std::optional<double>& ratio) {
  return ratio ? absl::StrFormat("%8.2fx", *ratio)
               : absl::StrFormat("%9s", "-");
}

// The columns that variants and the library share.
std::string TimesText(const LadderTimes& times,
                      const std::optional<double>& than_before) {
  std::string text;
  for (const double ns : times.ns) {
    absl::StrAppendFormat(&text, " %9.3f", ns * 1e-6);
  }
  return absl::StrFormat("%s %9.3f %s %s  ", text, times.sum_ns * 1e-6,
                         Ratio(than_before), Ratio(times.than_first));
}

}  // namespace

std::string LadderText(const RunRecord& record) {
  const LadderRows rows = RowsOf(record);
  size_t layers = 0;
  for (const LadderRow& row : rows.rows) {
    layers = std::max(layers, row.run->convolutions.size());
  }
  std::string text = NameText("variant");
  for (size_t i = 0; i < layers; ++i) {
    absl::StrAppendFormat(&text, " %9s", absl::StrCat("op ", i + 1, " ms"));
  }
  absl::StrAppendFormat(&text, " %9s %9s %9s  %-13s %7s %7s\n", "sum ms",
                        "vs before", "vs first", "class", "error", "correct");
  for (const LadderRow& row : rows.rows) {
    text += NameText(row.run->variant);
    if (!row.times) {
      absl::StrAppend(
          &text, " ",
          WrapText(row.run->failure, kNameWidth + 1, kNameWidth + 1), "\n");
      continue;
    }
    absl::StrAppend(
        &text, TimesText(*row.times, row.than_before),
        absl::StrFormat("%-13s %7.1e %7d\n", row.variant->accuracy_class,
                        row.run->relative_error, row.run->correct));
  }
  if (rows.library) {
    const PeerRecord& peer = *rows.library->first_layer;
    absl::StrAppend(&text, NameText(peer.library),
                    TimesText(rows.library->times, std::nullopt));
    absl::StrAppendFormat(&text, "%-13s kernel time\n", peer.accuracy_class);
  }
  for (const OverlapRecord& overlap : record.overlaps) {
    const double serial = Median(overlap.serial_ns);
    const double overlapped = Median(overlap.overlapped_ns);
    absl::StrAppendFormat(
        &text,
        "convolution %d of %d images from and to host memory, %d slices:\n"
        "  %.3f ms one after the other, %.3f ms in streams, %.2fx\n",
        overlap.layer, overlap.images, overlap.slices, serial * 1e-6,
        overlapped * 1e-6, serial / overlapped);
  }
  if (record.profile.has_value()) {
    absl::StrAppend(&text, "traced: times include the cost of tracing\n");
  }
  text.pop_back();  // the caller prints it as one line
  return text;
}

}  // namespace convlab
