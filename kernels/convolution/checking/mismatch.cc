#include "kernels/convolution/checking/mismatch.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/convolution/checking/mismatch_causes.h"
#include "kernels/convolution/checking/mismatch_places.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

// NaN has a sign for printf, and for nobody else.
std::string Number(double value) {
  return std::isnan(value) ? "NaN" : absl::StrFormat("%.9g", value);
}

}  // namespace

bool IsRight(float y, double expected, double allowed) {
  if (std::isnan(expected)) return std::isnan(y);
  // Infinities are equal, and differ from everything else.
  if (y == expected) return true;
  return std::isfinite(expected) && std::abs(y - expected) <= allowed;
}

double RootMeanSquare(absl::Span<const double> reference) {
  double sum = 0;
  int64_t count = 0;
  for (const double value : reference) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

Mismatch DescribeMismatch(const Problem& problem, absl::Span<const float> y,
                          absl::Span<const double> reference,
                          const Tolerance& tolerance, uint32_t poison,
                          const MismatchContext& context) {
  const double scale = RootMeanSquare(reference);
  const double allowed = tolerance.relative * scale;
  std::vector<int64_t> wrong;
  double largest = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    if (IsRight(y[i], reference[i], allowed)) continue;
    wrong.push_back(i);
    const double difference = std::abs(y[i] - reference[i]);
    if (difference > largest) largest = difference;
  }
  if (wrong.empty()) return {};
  OutputPlace first = PlaceOf(problem, wrong.front());
  if (!context.images.empty()) first.b = context.images[first.b];
  Mismatch mismatch;
  std::vector<std::string>& lines = mismatch.lines;
  lines = {absl::StrCat(
               ToString(problem), ": ", wrong.size(), " of ", y.size(),
               " outputs are wrong",
               context.images.empty()
                   ? ""
                   : absl::StrCat(" in ", problem.batch, " of ",
                                  std::count(context.wrong_images.begin(),
                                             context.wrong_images.end(), true),
                                  " wrong images")),
           absl::StrFormat(
               "first at (b=%d, m=%d, h=%d, w=%d): got %s, expected %s",
               first.b, first.m, first.h, first.w, Number(y[wrong.front()]),
               Number(reference[wrong.front()])),
           absl::StrCat("they lie ",
                        DescribePlaces(problem, wrong, context.wrong_images))};
  const size_t described = lines.size();
  const Causes causes = FindCauses(
      {problem, y, reference, context.x, context.k, scale, poison}, wrong);
  lines.insert(lines.end(), causes.lines.begin(), causes.lines.end());
  if (causes.lines.empty() && std::isfinite(largest) && scale > 0) {
    lines.push_back(absl::StrFormat(
        "the largest error is %.2g times the outputs' root mean square",
        largest / scale));
  }
  if (lines.size() > described) mismatch.cause = lines[described];
  mismatch.unwritten = causes.unwritten;
  return mismatch;
}

std::string MismatchText(const Problem& problem, absl::Span<const float> y,
                         absl::Span<const double> reference,
                         const Tolerance& tolerance, uint32_t poison,
                         const MismatchContext& context) {
  std::string text;
  for (const std::string& line :
       DescribeMismatch(problem, y, reference, tolerance, poison, context)
           .lines) {
    absl::StrAppend(&text, "\n", line);
  }
  return text;
}

}  // namespace convlab
