#include "kernels/measure/sampled_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "common/accuracy/contract.h"
#include "common/hash/mix.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/reference.h"

namespace convlab {
namespace {

void AddOutput(float y, float plain, const OutputReference& reference,
               ErrorSums& sums) {
  const double difference = y - reference.y64;
  sums.difference += difference * difference;
  sums.norm += reference.y64 * reference.y64;
  sums.factor = std::max(sums.factor, ErrorFactor(y, reference));
  sums.plain = std::max(sums.plain, ErrorFactor(plain, reference));
}

// Of the sums of all workers.
MeasuredError ErrorOf(const std::vector<ErrorSums>& sums) {
  ErrorSums all;
  for (const ErrorSums& one : sums) {
    all.difference += one.difference;
    all.norm += one.norm;
    all.factor = std::max(all.factor, one.factor);
    all.plain = std::max(all.plain, one.plain);
  }
  return ErrorOf(all);
}

}  // namespace

std::vector<int64_t> CheckedImages(int64_t batch) {
  constexpr int64_t kMost = 5;
  const int64_t count = std::min(kMost, batch);
  std::vector<int64_t> images;
  for (int64_t i = 0; i < count; ++i) {
    images.push_back(count == 1 ? 0 : i * (batch - 1) / (count - 1));
  }
  return images;
}

absl::Status CheckMeasured(const MeasuredError& error, AccuracyClass accuracy,
                           bool ordinary) {
  if (ordinary) RETURN_IF_ERROR(CheckError(error.relative, accuracy));
  if (accuracy != AccuracyClass::kFp32 || error.worst.ok()) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrFormat(
      "an output breaks the contract of class fp32: c = %.3g, expected at most "
      "%.3g",
      error.worst.factor, error.worst.allowed));
}

MeasuredError ErrorOf(const ErrorSums& sums) {
  MeasuredError error;
  if (sums.difference != 0) {
    error.relative = sums.norm == 0 ? std::numeric_limits<double>::infinity()
                                    : std::sqrt(sums.difference / sums.norm);
  }
  error.worst.factor = sums.factor;
  // As in ContractReference: where the plain loop is wrong itself it allows
  // nothing.
  error.worst.allowed =
      AllowedFactor(std::isfinite(sums.plain) ? sums.plain : 0);
  return error;
}

MeasuredError DrawnError(const Problem& problem, const float* x, const float* k,
                         const float* y, uint64_t seed, Workers& workers) {
  constexpr int64_t kGrain = 64;
  const int64_t plane = problem.output_height() * problem.output_width();
  const int64_t size = problem.kernel_size;
  const int64_t terms = problem.channels * size * size;
  std::vector<ErrorSums> sums(workers.count());
  workers.For(
      kDrawnOutputs, kGrain, [&](int worker, int64_t begin, int64_t end) {
        ErrorSums mine = sums[worker];
        for (int64_t i = begin; i < end; ++i) {
          const auto index = static_cast<int64_t>(
              Mix(seed, i) % static_cast<uint64_t>(problem.output_elements()));
          const int64_t b = index / (problem.filters * plane);
          const int64_t m = index / plane % problem.filters;
          const int64_t h = index % plane / problem.output_width();
          const int64_t w = index % problem.output_width();
          OutputReference reference = {0, 0, terms};
          float plain = 0;
          const float* weight = k + m * terms;
          for (int64_t c = 0; c < problem.channels; ++c) {
            for (int64_t p = 0; p < size; ++p) {
              const float* const in =
                  x +
                  ((b * problem.channels + c) * problem.height + h + p) *
                      problem.width +
                  w;
              for (int64_t q = 0; q < size; ++q, ++weight) {
                const double product = static_cast<double>(*weight) * in[q];
                reference.y64 += product;
                reference.magnitude += std::abs(product);
                plain += *weight * in[q];
              }
            }
          }
          AddOutput(y[index], plain, reference, mine);
        }
        sums[worker] = mine;
      });
  return ErrorOf(sums);
}

MeasuredError WholeError(const Problem& problem, const float* x, const float* k,
                         const float* y, Workers& workers) {
  // Of so many at a time, since the reference takes five times y's memory.
  constexpr int64_t kOutputs = 1 << 22;
  constexpr int64_t kGrain = 1 << 14;
  const int64_t inputs = problem.input_elements() / problem.batch;
  const int64_t outputs = problem.output_elements() / problem.batch;
  const int64_t terms = problem.kernel_elements() / problem.filters;
  const int64_t images = std::max<int64_t>(1, kOutputs / outputs);
  std::vector<ErrorSums> sums(workers.count());
  for (int64_t b = 0; b < problem.batch; b += images) {
    Problem part = problem;
    part.batch = std::min(images, problem.batch - b);
    const ReferenceSums reference =
        ReferenceWithMagnitudes(part, x + b * inputs, k, workers);
    const float* const out = y + b * outputs;
    workers.For(part.output_elements(), kGrain,
                [&](int worker, int64_t begin, int64_t end) {
                  ErrorSums mine = sums[worker];
                  for (int64_t i = begin; i < end; ++i) {
                    AddOutput(out[i], reference.plain[i],
                              {reference.y[i], reference.magnitude[i], terms},
                              mine);
                  }
                  sums[worker] = mine;
                });
  }
  return ErrorOf(sums);
}

absl::Status CheckDrawn(const MeasuredError& error, AccuracyClass accuracy,
                        bool ordinary) {
  const double allowed = 2 * MaxRelativeError(accuracy);
  // Not "error > allowed": NaN must not pass.
  if (ordinary && !(error.relative <= allowed)) {
    return absl::DataLossError(absl::StrFormat(
        "outputs that were drawn have a relative error of %.2g, expected at "
        "most %.0e in class %s",
        error.relative, allowed, Name(accuracy)));
  }
  return CheckMeasured(error, accuracy, /*ordinary=*/false);
}

SampledReference::SampledReference(const Problem& problem,
                                   const ReadInput& read, const float* k,
                                   Workers& workers)
    : images_(CheckedImages(problem.batch)), workers_(&workers) {
  Problem checked = problem;
  checked.batch = images_.size();
  const int64_t image = checked.input_elements() / checked.batch;
  std::vector<float> x(checked.input_elements());
  for (size_t i = 0; i < images_.size(); ++i) {
    read(images_[i], x.data() + i * image);
  }
  reference_.emplace(checked, x.data(), k, workers);
}

absl::StatusOr<MeasuredError> SampledReference::Error(
    const ReadOutput& read) const {
  const std::vector<double>& expected = reference_->y();
  const int64_t image = expected.size() / images_.size();
  std::vector<float> y(expected.size());
  for (size_t i = 0; i < images_.size(); ++i) {
    RETURN_IF_ERROR(read(images_[i], y.data() + i * image));
  }
  return MeasuredError{RelativeError(y.data(), expected),
                       reference_->Worst(y.data(), *workers_)};
}

}  // namespace convlab
