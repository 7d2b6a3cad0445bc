#include "kernels/convolution/checking/mismatch_causes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/convolution/checking/mismatch_places.h"
#include "kernels/convolution/checking/mismatch_sums.h"

namespace convlab {
namespace {

// The value that a wrong element would have by a hypothesis; absent if the
// hypothesis says nothing about the element.
using Guess = std::function<std::optional<double>(const OutputPlace&)>;

struct Hypothesis {
  std::string text;
  Guess guess;
};

// At most `most` of the elements, at equal distances.
std::vector<int64_t> Sample(const std::vector<int64_t>& elements, size_t most) {
  if (elements.size() <= most) return elements;
  std::vector<int64_t> sample;
  for (size_t i = 0; i < most; ++i) {
    sample.push_back(elements[i * elements.size() / most]);
  }
  return sample;
}

// Whether the guesses are right for 95 % of the elements for which there are
// any: for half of all at least, and for so many that they are not so by
// chance.
bool Explains(const WrongOutput& output, const std::vector<int64_t>& elements,
              const Guess& guess) {
  size_t guessed = 0, right = 0, misses = 0;
  for (const int64_t i : elements) {
    const std::optional<double> value = guess(PlaceOf(output.problem, i));
    if (!value) continue;
    ++guessed;
    // Coarse, so that errors of half precision do not hide the pattern.
    const double allowed =
        std::max(0.002 * std::abs(*value), 0.005 * output.scale);
    if (std::abs(output.y[i] - *value) <= allowed) {
      ++right;
    } else if (++misses > elements.size() / 20) {
      return false;
    }
  }
  return right >= 4 && 2 * guessed >= elements.size() &&
         static_cast<double>(right) >= 0.95 * static_cast<double>(guessed);
}

// "1 row below", "2 columns to the left", or both.
std::string Direction(int64_t rows, int64_t columns) {
  const auto part = [](int64_t n, const char* noun, const char* side) {
    return absl::StrCat(n, " ", noun, n == 1 ? "" : "s", " ", side);
  };
  std::string text;
  if (rows != 0) {
    text = part(std::abs(rows), "row", rows > 0 ? "below" : "above");
  }
  if (columns != 0) {
    absl::StrAppend(&text, text.empty() ? "" : " and ",
                    part(std::abs(columns), "column",
                         columns > 0 ? "to the right" : "to the left"));
  }
  return text;
}

// Elements that are stored in another place.
std::vector<Hypothesis> Misplaced(const WrongOutput& output) {
  const Problem& problem = output.problem;
  const int64_t images = problem.batch, filters = problem.filters;
  const int64_t height = problem.output_height();
  const int64_t width = problem.output_width();
  // The reference at a place, which may lie outside.
  const auto at = [=, reference = output.reference](
                      int64_t b, int64_t m, int64_t h,
                      int64_t w) -> std::optional<double> {
    if (b < 0 || b >= images || m < 0 || m >= filters || h < 0 || h >= height ||
        w < 0 || w >= width) {
      return std::nullopt;
    }
    return reference[((b * filters + m) * height + h) * width + w];
  };
  std::vector<Hypothesis> all;
  for (int64_t distance = 1; distance <= 2; ++distance) {
    for (int64_t dh = -distance; dh <= distance; ++dh) {
      for (int64_t dw = -distance; dw <= distance; ++dw) {
        if (std::max(std::abs(dh), std::abs(dw)) != distance) continue;
        all.push_back(
            {absl::StrCat("shifted: each is the value ", Direction(dh, dw)),
             [=](const OutputPlace& p) {
               return at(p.b, p.m, p.h + dh, p.w + dw);
             }});
      }
    }
  }
  for (const int64_t d : {1, -1}) {
    const std::string which = d > 0 ? "next" : "previous";
    all.push_back(
        {absl::StrCat("each is the value of the ", which, " filter"),
         [=](const OutputPlace& p) { return at(p.b, p.m + d, p.h, p.w); }});
    all.push_back(
        {absl::StrCat("each is the value of the ", which, " image"),
         [=](const OutputPlace& p) { return at(p.b + d, p.m, p.h, p.w); }});
  }
  all.push_back({"each is the value of filter 0",
                 [=](const OutputPlace& p) { return at(p.b, 0, p.h, p.w); }});
  all.push_back({"each is the value of image 0",
                 [=](const OutputPlace& p) { return at(0, p.m, p.h, p.w); }});
  all.push_back({"rows and columns are exchanged",
                 [=](const OutputPlace& p) { return at(p.b, p.m, p.w, p.h); }});
  // The tensor in another order: element n of the memory, or of an image's
  // part of it, belongs elsewhere.
  all.push_back({"stored in the order image, row, column, filter (NHWC)",
                 [=](const OutputPlace& p) {
                   const int64_t n = (p.m * height + p.h) * width + p.w;
                   return at(p.b, n % filters, n / filters / width,
                             n / filters % width);
                 }});
  all.push_back({"stored in the order filter, image, row, column",
                 [=](const OutputPlace& p) {
                   const int64_t plane = p.b * filters + p.m;
                   return at(plane % images, plane / images, p.h, p.w);
                 }});
  return all;
}

// The factor between the elements and their references, if there is one.
std::optional<double> Factor(const WrongOutput& output,
                             const std::vector<int64_t>& elements) {
  double products = 0, squares = 0;
  for (const int64_t i : elements) {
    products += output.y[i] * output.reference[i];
    squares += output.reference[i] * output.reference[i];
  }
  if (elements.size() < 4 || !(squares > 0)) return std::nullopt;
  const double factor = products / squares;
  double rest = 0;
  for (const int64_t i : elements) {
    const double d = output.y[i] - factor * output.reference[i];
    rest += d * d;
  }
  if (!(rest <= 1e-5 * factor * factor * squares)) return std::nullopt;
  return factor;
}

std::string FactorText(double factor) {
  if (std::abs(factor - 2) < 0.01) {
    return "each is twice the expected value: summed twice, or added to a "
           "sum that was not cleared";
  }
  return absl::StrFormat("each is %.4g times the expected value", factor);
}

// The cause of numbers where numbers are expected; empty if not recognized.
std::string CauseOfNumbers(const WrongOutput& output,
                           const std::vector<int64_t>& wrong) {
  const std::vector<int64_t> sample = Sample(wrong, 4096);
  const auto share = [&](const auto& holds) {
    return static_cast<double>(
               std::count_if(sample.begin(), sample.end(), holds)) /
           static_cast<double>(sample.size());
  };
  if (share([&](int64_t i) { return output.y[i] == 0; }) >= 0.95) {
    return "zero where values are expected";
  }
  if (share([&](int64_t i) { return std::isinf(output.y[i]); }) >= 0.95) {
    return "infinite: too large for the type that sums them (halves end at "
           "65504)";
  }
  if (const std::optional<double> factor = Factor(output, sample)) {
    return FactorText(*factor);
  }
  const float value = output.y[sample[0]];
  if (sample.size() >= 4 &&
      share([&](int64_t i) { return output.y[i] == value; }) >= 0.95) {
    return absl::StrFormat("all have the value %.9g", value);
  }
  for (const Hypothesis& hypothesis : Misplaced(output)) {
    if (Explains(output, sample, hypothesis.guess)) return hypothesis.text;
  }
  if (output.x.empty() || output.k.empty()) return "";
  // A sum is as expensive as the output itself.
  const std::vector<int64_t> few = Sample(wrong, 128);
  for (const WrongSum& sum : WrongSums(output.problem)) {
    const Guess guess = [&](const OutputPlace& p) -> std::optional<double> {
      return SumOf(sum, output.problem, output.x.data(), output.k.data(), p);
    };
    if (Explains(output, few, guess)) return sum.text;
  }
  return "";
}

// What new device memory holds where a kernel is judged, as another poison
// (kernels/judge/process/kernel_device.cc, kernels/judge/source/shims). No
// operation has this NaN as its result.
constexpr uint32_t kDevicePoison = 0xffffffff;

bool Same(float value, uint32_t bits) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  return word == bits;
}

}  // namespace

Causes FindCauses(const WrongOutput& output,
                  const std::vector<int64_t>& wrong) {
  std::vector<int64_t> unwritten, nan, lost, numbers;
  for (const int64_t i : wrong) {
    if (Same(output.y[i], output.poison) || Same(output.y[i], kDevicePoison)) {
      unwritten.push_back(i);
    } else if (!std::isfinite(output.reference[i])) {
      lost.push_back(i);
    } else {
      (std::isnan(output.y[i]) ? nan : numbers).push_back(i);
    }
  }
  const auto quantity = [&](const std::vector<int64_t>& part) {
    return part.size() == wrong.size()
               ? std::string()
               : absl::StrCat(part.size(), " of them: ");
  };
  Causes causes;
  std::vector<std::string>& lines = causes.lines;
  causes.unwritten = unwritten.size() == wrong.size();
  if (!unwritten.empty()) {
    lines.push_back(absl::StrCat(quantity(unwritten), "never written"));
  }
  if (!nan.empty()) {
    lines.push_back(absl::StrCat(quantity(nan),
                                 "NaN: from memory that nobody wrote, or sums "
                                 "added to an output that was not cleared"));
  }
  if (!lost.empty()) {
    lines.push_back(absl::StrCat(
        quantity(lost), "NaN or infinities of the inputs are not kept"));
  }
  if (!numbers.empty()) {
    const std::string cause = CauseOfNumbers(output, numbers);
    if (!cause.empty()) lines.push_back(quantity(numbers) + cause);
  }
  return causes;
}

}  // namespace convlab
