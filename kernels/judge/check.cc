#include "kernels/judge/check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/convolution/checking/contract.h"
#include "kernels/convolution/checking/mismatch.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

// Most of a check's time is in two loops, which the processor's widest vectors
// halve.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define CONVLAB_WIDE_VECTORS \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CONVLAB_WIDE_VECTORS
#endif

// Up to so much work the whole output is compared with the reference.
constexpr int64_t kFullFlops = 400'000'000;
constexpr int64_t kFullOutputs = 8'000'000;
// Otherwise that of so many images, and a description takes so many.
constexpr int64_t kSampledImages = 2;
constexpr int64_t kDescribedImages = 4;
// By how much the error of one element may exceed the bound of all.
constexpr double kLargestError = 16;

// Some images of a problem, with their reference.
struct Excerpt {
  Problem problem;  // its batch is the number of images
  std::vector<int64_t> images;
  std::vector<float> x, y;
  std::vector<double> reference;
};

Excerpt TakeExcerpt(const Problem& problem, std::vector<int64_t> images,
                    const SharedTensors& tensors, Workers& workers) {
  Excerpt excerpt;
  excerpt.problem = problem;
  excerpt.problem.batch = images.size();
  const int64_t inputs = problem.input_elements() / problem.batch;
  const int64_t outputs = problem.output_elements() / problem.batch;
  for (const int64_t b : images) {
    const float* const x = tensors.x.data() + b * inputs;
    const float* const y = tensors.y.data() + b * outputs;
    excerpt.x.insert(excerpt.x.end(), x, x + inputs);
    excerpt.y.insert(excerpt.y.end(), y, y + outputs);
  }
  excerpt.images = std::move(images);
  excerpt.reference = ReferenceConvolution(excerpt.problem, excerpt.x.data(),
                                           tensors.k.data(), workers);
  return excerpt;
}

// Whether the outputs of some neighbouring images, which the seed chooses, keep
// the contract of class fp32. Of some, because it costs twice what the
// reference does.
bool KeepsContract(const Excerpt& excerpt, absl::Span<const float> k,
                   uint64_t seed, Workers& workers) {
  Problem some = excerpt.problem;
  some.batch = std::min(some.batch, kSampledImages);
  const uint64_t places = excerpt.problem.batch - some.batch + 1;
  const int64_t first = static_cast<int64_t>(Mix(seed, 0xc0417) % places);
  const ContractReference reference(
      some, excerpt.x.data() + first * some.input_elements() / some.batch,
      k.data(), workers);
  return reference
      .Worst(excerpt.y.data() + first * some.output_elements() / some.batch,
             workers)
      .ok();
}

double MeanSquare(absl::Span<const float> values) {
  const std::vector<double> all(values.begin(), values.end());
  const double root = RootMeanSquare(all);
  return root * root;
}

// For each filter the size of its outputs, to which errors are relative: their
// root mean square, or what random signs would make of it, so that a few
// outputs that happen to be small do not make an error large.
std::vector<double> Scales(const Excerpt& excerpt, absl::Span<const float> k) {
  const Problem& problem = excerpt.problem;
  const int64_t plane = problem.output_height() * problem.output_width();
  const int64_t taps = problem.kernel_elements() / problem.filters;
  const double mean_x = MeanSquare(excerpt.x);
  std::vector<double> scales;
  for (int64_t m = 0; m < problem.filters; ++m) {
    const double expected = MeanSquare(k.subspan(m * taps, taps)) *
                            static_cast<double>(taps) * mean_x;
    double squares = 0;
    for (int64_t b = 0; b < problem.batch; ++b) {
      const double root = RootMeanSquare(
          absl::MakeConstSpan(excerpt.reference)
              .subspan((b * problem.filters + m) * plane, plane));
      squares += root * root;
    }
    scales.push_back(std::sqrt(
        std::max(expected, squares / static_cast<double>(problem.batch))));
  }
  return scales;
}

// Compares all elements of the excerpt.
void CompareElements(const Excerpt& excerpt, const std::vector<double>& scales,
                     Family family, OutputCheck& check) {
  const Problem& problem = excerpt.problem;
  const int64_t plane = problem.output_height() * problem.output_width();
  std::vector<double> squares(problem.filters);
  bool exact = true, rounds = true;
  for (size_t i = 0; i < excerpt.reference.size(); ++i) {
    const int64_t m = static_cast<int64_t>(i) / plane % problem.filters;
    const float y = excerpt.y[i];
    const double r = excerpt.reference[i];
    exact = exact && y == r;
    rounds = rounds && std::abs(y - r) < 0.5;
    if (IsRight(y, r, 0)) continue;
    if (std::isnan(y) && std::isfinite(r)) check.has_nan = true;
    // Zero scales are those of outputs that are all zero. NaN and infinities at
    // the wrong place are infinite errors.
    double d = std::abs(y - r) / scales[m];
    if (!std::isfinite(d)) d = HUGE_VAL;
    squares[m] += d * d;
    check.largest = std::max(check.largest, d);
  }
  const double per_filter = static_cast<double>(problem.batch * plane);
  for (const double square : squares) {
    check.error = std::max(check.error, std::sqrt(square / per_filter));
  }
  if (family == Family::kIntegers) {
    check.exact = exact;
    if (rounds) check.accuracy = AccuracyClass::kFp32;
  }
}

// The sum of all filters with random weights.
struct FilterSum {
  Problem problem;              // with one filter
  std::vector<double> weights;  // for each filter
  std::vector<double> k;        // C, K, K
  double norm = 0;              // of the random weights
};

FilterSum MakeFilterSum(const Problem& problem, absl::Span<const float> k,
                        const std::vector<double>& scales, uint64_t seed) {
  FilterSum sum;
  sum.problem = problem;
  sum.problem.filters = 1;
  const int64_t taps = problem.kernel_elements() / problem.filters;
  sum.k.resize(taps);
  for (int64_t m = 0; m < problem.filters; ++m) {
    const uint64_t random = Mix(seed, m);
    // Of different magnitudes, so that errors of two filters do not cancel.
    double u = 0.5 + static_cast<double>(random >> 11) * 0x1p-53;
    if (random % 2 == 0) u = -u;
    sum.norm += u * u;
    // Each filter counts in its own scale.
    sum.weights.push_back(scales[m] > 0 ? u / scales[m] : u);
    for (int64_t i = 0; i < taps; ++i) {
      sum.k[i] += sum.weights[m] * k[m * taps + i];
    }
  }
  sum.norm = std::sqrt(sum.norm);
  return sum;
}

// Subtracts the sum's convolution of one image from `out`.
CONVLAB_WIDE_VECTORS void SubtractConvolution(const FilterSum& sum,
                                              const float* x, double* out) {
  const Problem& problem = sum.problem;
  const int64_t size = problem.kernel_size;
  const int64_t output_width = problem.output_width();
  for (int64_t h = 0; h < problem.output_height(); ++h) {
    double* const row = out + h * output_width;
    const double* weight = sum.k.data();
    for (int64_t c = 0; c < problem.channels; ++c) {
      for (int64_t p = 0; p < size; ++p) {
        const float* in = x + (c * problem.height + h + p) * problem.width;
        for (int64_t q = 0; q < size; ++q, ++weight) {
          for (int64_t w = 0; w < output_width; ++w) {
            row[w] -= *weight * in[w + q];
          }
        }
      }
    }
  }
}

// Adds the weighted sum of one image's filters to `out`.
CONVLAB_WIDE_VECTORS void AddFilters(const FilterSum& sum, const float* y,
                                     int64_t plane, double* out) {
  for (const double weight : sum.weights) {
    for (int64_t i = 0; i < plane; ++i) out[i] += weight * y[i];
    y += plane;
  }
}

// Compares all images by the sum of their filters. Returns which are wrong by
// the loosest class.
std::vector<bool> CompareSums(const Problem& problem,
                              const SharedTensors& tensors,
                              const FilterSum& sum, Workers& workers,
                              OutputCheck& check) {
  const int64_t plane = problem.output_height() * problem.output_width();
  const int64_t image = problem.input_elements() / problem.batch;
  std::vector<double> squares(problem.batch), largest(problem.batch);
  std::vector<std::vector<double>> rows(workers.count());
  workers.For(problem.batch, 1, [&](int worker, int64_t begin, int64_t end) {
    std::vector<double>& out = rows[worker];
    for (int64_t b = begin; b < end; ++b) {
      out.assign(plane, 0);
      AddFilters(sum, tensors.y.data() + b * problem.filters * plane, plane,
                 out.data());
      SubtractConvolution(sum, tensors.x.data() + b * image, out.data());
      // In registers: neighbours in these lists are other workers'.
      double square = 0, most = 0;
      for (const double value : out) {
        const double d = std::abs(value) / sum.norm;
        square += d * d;
        most = std::max(most, std::isnan(d) ? HUGE_VAL : d);
      }
      squares[b] = square;
      largest[b] = most;
    }
  });
  const double bound = MaxRelativeError(
      AccuracyClass::kBf16, problem.kernel_elements() / problem.filters);
  std::vector<bool> wrong(problem.batch);
  double square = 0;
  for (int64_t b = 0; b < problem.batch; ++b) {
    square += squares[b];
    check.largest = std::max(check.largest, largest[b]);
    if (std::isinf(largest[b])) check.has_nan = true;
    wrong[b] = !(largest[b] <= kLargestError * bound &&
                 squares[b] <= 4 * bound * bound * static_cast<double>(plane));
  }
  const double error =
      std::sqrt(square / static_cast<double>(problem.batch * plane));
  check.error = std::max(check.error, std::isnan(error) ? HUGE_VAL : error);
  return wrong;
}

std::optional<AccuracyClass> ClassOf(const OutputCheck& check, int64_t terms,
                                     bool keeps_contract) {
  for (const AccuracyClass accuracy : kAccuracyClasses) {
    if (accuracy == AccuracyClass::kFp32 && !keeps_contract) continue;
    const double bound = MaxRelativeError(accuracy, terms);
    if (check.error <= bound && check.largest <= kLargestError * bound) {
      return accuracy;
    }
  }
  return std::nullopt;
}

// Describes the excerpt of a wrong output.
void Describe(const Excerpt& excerpt, const Inputs& inputs,
              absl::Span<const float> k, uint32_t poison,
              const std::vector<bool>& wrong_images, OutputCheck& check) {
  const double bound = MaxRelativeError(AccuracyClass::kBf16);
  const double scale = RootMeanSquare(excerpt.reference);
  const bool integers = inputs.family == Family::kIntegers;
  const Tolerance tolerance = {integers && scale > 0 ? 0.499 / scale
                                                     : 3 * bound};
  MismatchContext context = {excerpt.x, k, {}, wrong_images};
  if (!wrong_images.empty()) context.images = excerpt.images;
  Mismatch mismatch =
      DescribeMismatch(excerpt.problem, excerpt.y, excerpt.reference, tolerance,
                       poison, context);
  check.mismatch = std::move(mismatch.lines);
  check.cause = std::move(mismatch.cause);
  check.unwritten = mismatch.unwritten;
  if (check.mismatch.empty()) {
    check.mismatch.push_back(absl::StrFormat(
        "%s: relative error %.2g, expected at most %.0e, that of the loosest "
        "class",
        ToString(inputs.problem), check.error, bound));
  }
  check.mismatch.push_back(
      absl::StrCat("the inputs were ", Name(inputs.family)));
}

}  // namespace

OutputCheck CheckOutput(const Inputs& inputs, const SharedTensors& tensors,
                        uint32_t poison, uint64_t seed, Workers& workers) {
  const Problem& problem = inputs.problem;
  const int64_t terms = problem.kernel_elements() / problem.filters;
  OutputCheck check;
  std::vector<int64_t> images(problem.batch);
  std::iota(images.begin(), images.end(), 0);
  const bool full = problem.flops() <= kFullFlops &&
                    problem.output_elements() <= kFullOutputs;
  if (!full) {
    const int64_t count = std::min(kSampledImages, problem.batch);
    std::vector<int64_t> some;
    for (int64_t i = 0; i < count; ++i) {
      // One of each part of the batch.
      const int64_t begin = i * problem.batch / count;
      const int64_t size = (i + 1) * problem.batch / count - begin;
      some.push_back(begin + static_cast<int64_t>(Mix(seed, ~i) %
                                                  static_cast<uint64_t>(size)));
    }
    images = std::move(some);
  }
  Excerpt excerpt = TakeExcerpt(problem, std::move(images), tensors, workers);
  const std::vector<double> scales = Scales(excerpt, tensors.k);
  CompareElements(excerpt, scales, inputs.family, check);
  std::vector<bool> wrong_images;
  if (!full) {
    const FilterSum sum = MakeFilterSum(problem, tensors.k, scales, seed);
    wrong_images = CompareSums(problem, tensors, sum, workers, check);
  }
  if (!check.accuracy && !(full && inputs.family == Family::kIntegers)) {
    check.accuracy =
        ClassOf(check, terms, KeepsContract(excerpt, tensors.k, seed, workers));
  }
  if (check.accuracy) return check;
  if (!full) {
    std::vector<int64_t> some;
    for (int64_t b = 0; b < problem.batch; ++b) {
      if (wrong_images[b]) some.push_back(b);
    }
    if (static_cast<int64_t>(some.size()) > kDescribedImages) {
      // The first two and the last two.
      some.erase(some.begin() + 2, some.end() - 2);
    }
    if (!some.empty()) {
      excerpt = TakeExcerpt(problem, std::move(some), tensors, workers);
    }
  }
  Describe(excerpt, inputs, tensors.k, poison, wrong_images, check);
  return check;
}

}  // namespace convlab
