#include "common/accuracy/contract.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace convlab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnitRoundoff = 0x1p-24;
constexpr double kLeastFloat = 0x1p-149;  // the smallest denormal

}  // namespace

bool MayOverflow(double magnitude) { return magnitude >= 0x1p127; }

double ErrorFactor(float y, const OutputReference& reference) {
  // Float64 holds every sum of finite products of floats.
  if (!std::isfinite(reference.y64)) {
    const bool right = std::isnan(reference.y64)
                           ? std::isnan(y)
                           : static_cast<double>(y) == reference.y64;
    return right ? 0 : kInfinity;
  }
  if (!std::isfinite(y)) {
    return MayOverflow(reference.magnitude) ? 0 : kInfinity;
  }
  const double excess = std::abs(y - reference.y64) -
                        kLeastFloat * static_cast<double>(reference.terms);
  if (excess <= 0) return 0;
  return reference.magnitude > 0
             ? excess / (kUnitRoundoff * reference.magnitude)
             : kInfinity;
}

double AllowedFactor(double plain) { return std::max(16.0, 4 * plain); }

}  // namespace convlab
