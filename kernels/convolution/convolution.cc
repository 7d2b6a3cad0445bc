#include "kernels/convolution/convolution.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"

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

std::string ToString(const MaxPool& pool) {
  return absl::StrCat("max pooling of ", pool.size, "x", pool.size,
                      " with stride ", pool.stride,
                      pool.ceil ? ", rounded up" : "");
}

// Whether each window of the pool begins within `in` rows.
bool WindowsFit(const MaxPool& pool, int64_t in) {
  return pool.size <= in && (pool.Output(in) - 1) * pool.stride < in;
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

absl::Status CheckEpilogue(const Problem& problem, const Epilogue& epilogue) {
  const MaxPool& pool = epilogue.pool;
  if (pool.size == 0) return absl::OkStatus();
  const int64_t height = problem.output_height();
  const int64_t width = problem.output_width();
  if (pool.size > 0 && pool.stride > 0 && WindowsFit(pool, height) &&
      WindowsFit(pool, width)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "epilogue of convolution ", ToString(problem), ": ", ToString(pool),
      ", expected windows within the output of ", height, "x", width));
}

std::string ToString(const Epilogue& epilogue) {
  std::vector<std::string> parts;
  if (epilogue.bias != nullptr) parts.push_back("bias");
  if (epilogue.activation == Activation::kTanh) parts.push_back("tanh");
  if (epilogue.activation == Activation::kRelu) parts.push_back("ReLU");
  if (epilogue.pool.size > 0) parts.push_back(ToString(epilogue.pool));
  if (parts.empty()) return "nothing";
  std::string last = std::move(parts.back());
  parts.pop_back();
  if (parts.empty()) return last;
  return absl::StrCat(absl::StrJoin(parts, ", "), " and ", last);
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

absl::Status Variant::Check(const Problem& problem, const Resources& resources,
                            const Epilogue& epilogue) const {
  RETURN_IF_ERROR(CheckProblem(problem));
  RETURN_IF_ERROR(CheckEpilogue(problem, epilogue));
  RETURN_IF_ERROR(supports(problem, resources));
  if (epilogue.empty()) return absl::OkStatus();
  if (fuses == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        name, " fuses no epilogue, and so not ", ToString(epilogue)));
  }
  return fuses(problem, epilogue, resources);
}

absl::StatusOr<std::unique_ptr<Convolution>> Variant::Create(
    const Problem& problem, const Resources& resources,
    const Epilogue& epilogue) const {
  RETURN_IF_ERROR(Check(problem, resources, epilogue));
  return make(problem, epilogue, resources);
}

absl::Status SupportsAll(const Problem&, const Resources&) {
  return absl::OkStatus();
}

}  // namespace convlab
