#include "tools/bench/host_tensors.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/poison.h"
#include "kernels/judge/check.h"

namespace convlab {
namespace {

// As bits: a float register may change a NaN.
bool IsPoison(const float& value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  return word == kPoisonedWord;
}

bool SameBytes(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

}  // namespace

GuardedFloats::GuardedFloats(int64_t size) : values_(size + 2 * kZone) {
  RestoreZones();
  Poison();
}

void GuardedFloats::Poison() {
  std::memset(data(), kPoison, size() * sizeof(float));
}

int64_t GuardedFloats::CountPoisoned() const {
  return std::count_if(data(), data() + size(), IsPoison);
}

bool GuardedFloats::ZonesAreIntact() const {
  return std::all_of(values_.begin(), values_.begin() + kZone, IsPoison) &&
         std::all_of(values_.end() - kZone, values_.end(), IsPoison);
}

void GuardedFloats::RestoreZones() {
  std::memset(values_.data(), kPoison, kZone * sizeof(float));
  std::memset(data() + size(), kPoison, kZone * sizeof(float));
}

BenchTensors::BenchTensors(const Problem& problem, const Recipe& recipe,
                           bool ordinary, Workers& workers)
    : problem_(problem),
      recipe_(recipe),
      ordinary_(ordinary),
      workers_(workers),
      first_(MakeData(problem, recipe)),
      x_(problem.input_elements()),
      k_(problem.kernel_elements()),
      y_(problem.output_elements()),
      reference_(
          problem,
          [this](int64_t b, float* image) {
            std::copy_n(first_.x.data() + b * image_elements(),
                        image_elements(), image);
          },
          first_.k.data(), workers) {
  Restore();
}

const float* BenchTensors::ExpectedImage(int64_t b) const {
  if (b == now_.new_place) return now_.new_image.data();
  return first_.x.data() + (b + now_.shift) % problem_.batch * image_elements();
}

void BenchTensors::Place() {
  workers_.For(problem_.batch, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      std::copy_n(ExpectedImage(b), image_elements(),
                  x_.data() + b * image_elements());
    }
  });
  std::copy(now_.k.begin(), now_.k.end(), k_.data());
  for (GuardedFloats* const tensor : {&x_, &k_, &y_}) tensor->RestoreZones();
}

void BenchTensors::Restore() {
  now_ = Renewal();
  now_.k = first_.k;
  Place();
}

void BenchTensors::Renew(uint64_t seed) {
  now_ = DrawRenewal(problem_, recipe_, ordinary_, first_.k, seed);
  Place();
}

absl::StatusOr<MeasuredError> BenchTensors::Error() const {
  if (const int64_t unwritten = y_.CountPoisoned(); unwritten > 0) {
    return absl::DataLossError(
        absl::StrCat(unwritten, " elements of the output were not written"));
  }
  const int64_t image = problem_.output_elements() / problem_.batch;
  return reference_.Error([&](int64_t b, float* out) {
    std::copy_n(y_.data() + b * image, image, out);
    return absl::OkStatus();
  });
}

absl::Status BenchTensors::CheckUse() const {
  std::atomic<bool> same(SameBytes(k_.data(), now_.k.data(), now_.k.size()));
  workers_.For(problem_.batch, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      if (!SameBytes(x_.data() + b * image_elements(), ExpectedImage(b),
                     image_elements())) {
        same = false;
      }
    }
  });
  if (!same) {
    return absl::DataLossError("the inputs or the weights were changed");
  }
  for (const auto& [name, tensor] :
       {std::pair("inputs", &x_), {"weights", &k_}, {"output", &y_}}) {
    if (tensor->ZonesAreIntact()) continue;
    return absl::DataLossError(
        absl::StrCat("something was written beside the ", name));
  }
  return absl::OkStatus();
}

absl::Status BenchTensors::CheckDrawnOutputs(AccuracyClass accuracy,
                                             uint64_t seed) const {
  return CheckDrawn(
      DrawnError(problem_, x_.data(), k_.data(), y_.data(), seed, workers_),
      accuracy, ordinary_);
}

absl::Status BenchTensors::CheckWholeOutput(AccuracyClass accuracy,
                                            uint64_t seed) {
  if (!ordinary_) {
    return Annotate(CheckMeasured(WholeError(problem_, x_.data(), k_.data(),
                                             y_.data(), workers_),
                                  accuracy, ordinary_),
                    "the whole output");
  }
  const SharedTensors tensors = {{x_.data(), static_cast<size_t>(x_.size())},
                                 {k_.data(), static_cast<size_t>(k_.size())},
                                 {y_.data(), static_cast<size_t>(y_.size())}};
  const OutputCheck check = CheckOutput({problem_, Family::kSigned, seed},
                                        tensors, kPoisonedWord, seed, workers_);
  if (check.accuracy && *check.accuracy <= accuracy) return absl::OkStatus();
  if (!check.mismatch.empty()) {
    return absl::DataLossError(absl::StrJoin(check.mismatch, "; "));
  }
  return absl::DataLossError(absl::StrFormat(
      "relative error %.2g, the largest of an output %.2g: expected those of "
      "class %s",
      check.error, check.largest, Name(accuracy)));
}

}  // namespace convlab
