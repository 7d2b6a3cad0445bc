#include "kernels/judge/tensors.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace convlab {
namespace {

// Elements that a worker takes at a time.
constexpr int64_t kPiece = 1 << 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Tensors of fewer elements have no zeros for corners.
constexpr size_t kFewestWithCorners = 64;

// From 23 random bits: [0, 1).
float Unit(uint32_t bits) {
  return static_cast<float>(bits & 0x7fffff) * 0x1p-23f;
}

class Generator {
 public:
  Generator(const Inputs& inputs, bool weights)
      : family_(inputs.family),
        seed_(Mix(inputs.seed, weights ? 1 : 2)),
        weights_(weights),
        per_filter_(inputs.problem.kernel_elements() / inputs.problem.filters),
        not_finite_(0xffffffffu / (8 * per_filter_)) {}

  // Writes the values of the indices in [begin, end), where `begin` is even.
  void Write(int64_t begin, int64_t end, float* values) const {
    // Two values from each hash.
    for (int64_t i = begin; i < end; i += 2) {
      const uint64_t hash = Mix(seed_, i / 2);
      values[i] = Value(i, static_cast<uint32_t>(hash));
      if (i + 1 == end) return;
      values[i + 1] = Value(i + 1, static_cast<uint32_t>(hash >> 32));
    }
  }

 private:
  float Value(int64_t i, uint32_t bits) const {
    const float in_unit = Unit(bits >> 8);
    const float with_sign = 2 * in_unit - 1;
    switch (family_) {
      case Family::kIntegers:
        // -2 to 2, or -1 to 1.
        return static_cast<float>(
            static_cast<int>((bits >> 8) % (weights_ ? 3 : 5)) -
            (weights_ ? 1 : 2));
      case Family::kSigned:
        return with_sign;
      case Family::kPositive:
        return in_unit;
      case Family::kFilterScales:
        return weights_ ? std::ldexp(with_sign,
                                     static_cast<int>(i / per_filter_ % 9) - 4)
                        : with_sign;
      case Family::kSmall:
        return with_sign * 0x1p-10f;
      case Family::kLarge:
        return weights_ ? 64 * with_sign : 256 * in_unit;
      case Family::kNotFinite:
        if (weights_ || bits >= not_finite_) return with_sign;
        if (bits % 3 == 0) return std::numeric_limits<float>::quiet_NaN();
        return bits % 3 == 1 ? kInfinity : -kInfinity;
    }
    return 0;
  }

  const Family family_;
  const uint64_t seed_;
  const bool weights_;
  const int64_t per_filter_;
  // Random bits below are a value that is not finite: one of eight outputs
  // depends on one.
  const uint32_t not_finite_;
};

void FillOne(const Generator& generator, absl::Span<float> values,
             Workers& workers) {
  workers.For(values.size(), kPiece, [&](int, int64_t begin, int64_t end) {
    generator.Write(begin, end, values.data());
  });
}

}  // namespace

absl::string_view Name(Family family) {
  switch (family) {
    case Family::kIntegers:
      return "small integers";
    case Family::kSigned:
      return "values in [-1, 1)";
    case Family::kPositive:
      return "values in [0, 1)";
    case Family::kFilterScales:
      return "filters of different scales";
    case Family::kSmall:
      return "values near 0.001";
    case Family::kLarge:
      return "pixels up to 256 and weights up to 64";
    case Family::kNotFinite:
      return "NaN and infinities";
  }
  return "";
}

void Fill(const Inputs& inputs, absl::Span<float> x, absl::Span<float> k,
          Workers& workers) {
  FillOne(Generator(inputs, /*weights=*/false), x, workers);
  FillOne(Generator(inputs, /*weights=*/true), k, workers);
  if (!inputs.zero_corners) return;
  for (const absl::Span<float> values : {x, k}) {
    if (values.size() < kFewestWithCorners) continue;
    values.front() = values.back() = 0;
  }
}

uint32_t RandomPoison(uint64_t seed) {
  // Exponent of NaN, the quiet bit clear, the payload not zero.
  return 0x7f800001u | (static_cast<uint32_t>(Mix(seed, 3)) & 0x803fffffu);
}

void FillBits(uint32_t bits, absl::Span<float> y, Workers& workers) {
  workers.For(y.size(), kPiece, [&](int, int64_t begin, int64_t end) {
    // As integers: a float register may make a signaling NaN quiet.
    char* const bytes = reinterpret_cast<char*>(y.data());
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(bytes + 4 * i, &bits, sizeof bits);
    }
  });
}

}  // namespace convlab
