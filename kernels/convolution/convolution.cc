#include "kernels/convolution/convolution.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace convlab {
namespace {

// Whether the product of the positive factors is at most `limit`.
bool ProductFits(std::initializer_list<int64_t> factors, int64_t limit) {
  for (const int64_t factor : factors) {
    if (factor > limit) return false;
    limit /= factor;
  }
  return true;
}

}  // namespace

absl::Status CheckProblem(const Problem& problem) {
  const std::pair<const char*, int64_t> dimensions[] = {
      {"B", problem.batch},   {"C", problem.channels},
      {"H", problem.height},  {"W", problem.width},
      {"M", problem.filters}, {"K", problem.kernel_size}};
  for (const auto& [name, value] : dimensions) {
    if (value < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("convolution ", ToString(problem), ": ", name, " is ",
                       value, ", expected at least 1"));
    }
  }
  if (problem.kernel_size > problem.height ||
      problem.kernel_size > problem.width) {
    return absl::InvalidArgumentError(
        absl::StrCat("convolution ", ToString(problem),
                     ": the kernel is larger than the image"));
  }
  // FLOPs are the largest number computed from a problem.
  const int64_t limit = std::numeric_limits<int64_t>::max();
  if (!ProductFits(
          {4, problem.batch, problem.channels, problem.height, problem.width},
          limit) ||
      !ProductFits({8, problem.batch, problem.filters, problem.output_height(),
                    problem.output_width(), problem.channels,
                    problem.kernel_size, problem.kernel_size},
                   limit)) {
    return absl::InvalidArgumentError(
        absl::StrCat("convolution ", ToString(problem),
                     ": too large to be counted in 64 bits"));
  }
  return absl::OkStatus();
}

std::string ToString(const Problem& problem) {
  return absl::StrCat("B=", problem.batch, " C=", problem.channels,
                      " H=", problem.height, " W=", problem.width,
                      " M=", problem.filters, " K=", problem.kernel_size);
}

absl::string_view Name(Backend backend) {
  switch (backend) {
    case Backend::kCpu:
      return "cpu";
    case Backend::kCuda:
      return "cuda";
  }
  return "";
}

absl::string_view Name(Track track) {
  switch (track) {
    case Track::kLesson:
      return "lesson";
    case Track::kSpecialty:
      return "specialty";
    case Track::kProduction:
      return "production";
  }
  return "";
}

absl::StatusOr<std::unique_ptr<Convolution>> Variant::Create(
    const Problem& problem, const Resources& resources) const {
  if (absl::Status status = CheckProblem(problem); !status.ok()) return status;
  if (absl::Status status = supports(problem, resources); !status.ok()) {
    return status;
  }
  return make(problem, resources);
}

absl::Status SupportsAll(const Problem&, const Resources&) {
  return absl::OkStatus();
}

}  // namespace convlab
