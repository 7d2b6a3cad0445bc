#include "kernels/convolution/checking/mismatch_places.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace convlab {
namespace {

// The largest power of two that divides n > 0.
int64_t PowerOfTwoIn(int64_t n) { return n & -n; }

// "columns 12 to 15 of every 16" if exactly the indices in one interval of each
// period are set, and the interval begins or ends the period; or empty.
std::string DescribePeriod(const std::string& noun,
                           const std::vector<bool>& set) {
  const int64_t size = set.size();
  constexpr int64_t kLongest = 64;
  for (int64_t period = 2; period <= std::min(kLongest, size / 2); ++period) {
    bool repeats = true;
    for (int64_t i = period; i < size && repeats; ++i) {
      repeats = set[i] == set[i - period];
    }
    if (!repeats) continue;
    int64_t first = 0;
    while (!set[first]) ++first;
    int64_t last = period - 1;
    while (!set[last]) --last;
    const int64_t count = std::count(set.begin(), set.begin() + period, true);
    // The shortest period is the pattern, if there is one at all.
    if (count != last - first + 1) return "";
    if (period == 2) {
      return absl::StrCat("every second ", noun, ", from ", first, " on");
    }
    if (count == 1) {
      return absl::StrCat("one ", noun, " of every ", period, ", from ", first,
                          " on");
    }
    return absl::StrCat(noun, "s ", first, " to ", last, " of every ", period);
  }
  return "";
}

// One dimension of the output.
struct Axis {
  std::string noun;
  std::vector<bool> set;  // the indices with wrong elements

  int64_t Count() const { return std::count(set.begin(), set.end(), true); }
};

}  // namespace

OutputPlace PlaceOf(const Problem& problem, int64_t element) {
  OutputPlace place;
  place.w = element % problem.output_width();
  element /= problem.output_width();
  place.h = element % problem.output_height();
  element /= problem.output_height();
  place.m = element % problem.filters;
  place.b = element / problem.filters;
  return place;
}

std::string DescribeIndices(const std::string& noun,
                            const std::vector<bool>& set) {
  const int64_t size = set.size();
  const int64_t count = std::count(set.begin(), set.end(), true);
  if (count == 0 || count == size) return "";
  int64_t first = 0;
  while (!set[first]) ++first;
  int64_t last = size - 1;
  while (!set[last]) --last;
  if (count == 1) {
    if (first == 0) return absl::StrCat("the first ", noun);
    if (first == size - 1) return absl::StrCat("the last ", noun);
    return absl::StrCat(noun, " ", first);
  }
  if (last - first + 1 != count) return DescribePeriod(noun, set);
  if (first == 0) {
    return absl::StrCat("the first ", count, " ", noun, "s");
  }
  if (last != size - 1) return absl::StrCat(noun, "s ", first, " to ", last);
  // The rest behind the last whole tile is what is forgotten most often.
  const int64_t tile = PowerOfTwoIn(first);
  return absl::StrCat(
      noun, "s from ", first, " on",
      tile >= 4 && count < tile
          ? absl::StrCat(" (", first, " is a multiple of ", tile, ")")
          : "");
}

std::string DescribePlaces(const Problem& problem,
                           const std::vector<int64_t>& wrong,
                           const std::vector<bool>& wrong_images) {
  Axis axes[] = {{"column", std::vector<bool>(problem.output_width())},
                 {"row", std::vector<bool>(problem.output_height())},
                 {"filter", std::vector<bool>(problem.filters)},
                 {"image", std::vector<bool>(problem.batch)}};
  for (const int64_t element : wrong) {
    const OutputPlace place = PlaceOf(problem, element);
    axes[0].set[place.w] = true;
    axes[1].set[place.h] = true;
    axes[2].set[place.m] = true;
    axes[3].set[place.b] = true;
  }
  const double count = wrong.size();
  double box = 1;
  for (const Axis& axis : axes) box *= axis.Count();
  const double share = count / box;
  // A few elements fill a small box by chance.
  const bool filled = share > 0.9 && count >= 3;
  std::vector<std::string> parts;
  for (Axis& axis : axes) {
    if (axis.noun == "image" && !wrong_images.empty()) axis.set = wrong_images;
    const double of_all = axis.Count() / static_cast<double>(axis.set.size());
    // With this probability that many elements are in such a set by chance.
    const bool by_chance = count * -std::log(of_all) < 12;
    if (!filled && by_chance) continue;
    const std::string part = DescribeIndices(axis.noun, axis.set);
    if (!part.empty()) parts.push_back(part);
  }
  const int64_t all = problem.output_elements();
  const int64_t run = wrong.back() - wrong.front() + 1;
  if (!(filled && !parts.empty()) && count >= 16 && run < all &&
      count > 0.98 * static_cast<double>(run) && wrong_images.empty()) {
    return absl::StrCat("in one run: elements ", wrong.front(), " to ",
                        wrong.back(), " of the ", all, " in memory");
  }
  if (!parts.empty()) {
    return absl::StrCat(
        "in ", absl::StrJoin(parts, ", "),
        filled ? "" : absl::StrFormat(" (%.2g %% of those)", 100 * share));
  }
  if (count > 0.9 * static_cast<double>(all)) return "everywhere";
  return "scattered, without a pattern";
}

}  // namespace convlab
