#include "kernels/convolution/checking/operations.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace convlab {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

// The value rounded to a finite float.
float Finite(double value) {
  return static_cast<float>(std::clamp<double>(value, -kLargest, kLargest));
}

// The value times 2^exponent, rounded once. Infinities stay.
float Scaled(float value, int exponent) {
  if (std::isinf(value)) return value;
  return Finite(std::ldexp(1.0, exponent) * value);
}

void ScaleRange(std::vector<float>& values, int64_t begin, int64_t count,
                int exponent) {
  for (int64_t i = begin; i < begin + count; ++i) {
    values[i] = Scaled(values[i], exponent);
  }
}

// Calls visit(value, h, w) for all inputs.
template <typename Visit>
void ForPixels(OperationTarget& target, Visit visit) {
  float* value = target.x.data();
  for (int64_t plane = 0; plane < target.plane_count(); ++plane) {
    for (int64_t h = 0; h < target.problem.height; ++h) {
      for (int64_t w = 0; w < target.problem.width; ++w) visit(*value++, h, w);
    }
  }
}

void Positive(OperationTarget& target) {
  for (float& value : target.x) value = std::abs(value);
}

void PositiveFilters(OperationTarget& target) {
  for (float& value : target.k) value = std::abs(value);
}

void FilterScales(OperationTarget& target) {
  const int64_t filter = target.k.size() / target.problem.filters;
  for (int64_t m = 0; m < target.problem.filters; ++m) {
    ScaleRange(target.k, m * filter, filter,
               target.Between(m, target.a, target.b));
  }
}

void ChannelScales(OperationTarget& target) {
  const int64_t channels = target.problem.channels;
  for (int64_t plane = 0; plane < target.plane_count(); ++plane) {
    ScaleRange(target.x, plane * target.area(), target.area(),
               target.Between(plane % channels, target.a, target.b));
  }
  for (int64_t i = 0; i < target.problem.filters * channels; ++i) {
    ScaleRange(target.k, i * target.taps(), target.taps(),
               -target.Between(i % channels, target.a, target.b));
  }
}

void ImageScales(OperationTarget& target) {
  const int64_t image = target.x.size() / target.problem.batch;
  for (int64_t b = 0; b < target.problem.batch; ++b) {
    ScaleRange(target.x, b * image, image,
               target.Between(b, target.a, target.b));
  }
}

// Scales the rectangle of all channels of an image.
void ScaleRectangle(OperationTarget& target, int64_t b, int64_t top,
                    int64_t bottom, int64_t left, int64_t right) {
  const Problem& p = target.problem;
  for (int64_t c = 0; c < p.channels; ++c) {
    for (int64_t h = top; h < bottom; ++h) {
      ScaleRange(target.x,
                 ((b * p.channels + c) * p.height + h) * p.width + left,
                 right - left, target.a);
    }
  }
}

void Half(OperationTarget& target) {
  const int64_t height = target.problem.height, width = target.problem.width;
  for (int64_t b = 0; b < target.problem.batch; ++b) {
    const int64_t side = target.Below(b, 4);
    ScaleRectangle(target, b, side == 0 ? height / 2 : 0,
                   side == 1 ? height / 2 : height, side == 2 ? width / 2 : 0,
                   side == 3 ? width / 2 : width);
  }
}

void Rectangle(OperationTarget& target) {
  const int64_t height = target.problem.height, width = target.problem.width;
  for (int64_t b = 0; b < target.problem.batch; ++b) {
    const int64_t top = target.Below(4 * b, height);
    const int64_t left = target.Below(4 * b + 1, width);
    ScaleRectangle(target, b, top,
                   top + 1 + target.Below(4 * b + 2, height - top), left,
                   left + 1 + target.Below(4 * b + 3, width - left));
  }
}

// Sets `count` elements of each of the groups to a power of two of either sign.
void SetSome(OperationTarget& target, std::vector<float>& values,
             int64_t groups) {
  const int64_t group = values.size() / groups;
  for (int64_t i = 0; i < groups * target.a; ++i) {
    const float value = Scaled(target.Draw(2 * i) % 2 == 0 ? 1 : -1, target.b);
    values[i / target.a * group + target.Below(2 * i + 1, group)] = value;
  }
}

void Pixels(OperationTarget& target) {
  SetSome(target, target.x, target.problem.batch);
}

void Taps(OperationTarget& target) {
  SetSome(target, target.k, target.problem.filters);
}

// The sign of an image, channel and place is the product of its parts' signs.
// Alternating ones stay so wherever a filter stands, so that the filter's are
// those of every window, or all the opposite.
void SameSign(OperationTarget& target) {
  const Problem& p = target.problem;
  // Rows, columns or both alternate: filters have both signs then.
  const uint64_t alternating = 1 + target.Draw(0) % 3;
  const auto place = [&](int64_t c, int64_t h, int64_t w) {
    return (target.Draw(1 + c) ^ (alternating & 1) * h ^
            (alternating >> 1) * w) &
           1;
  };
  const auto give = [&](std::vector<float>& values, int64_t tensors,
                        int64_t height, int64_t width, uint64_t first) {
    float* value = values.data();
    for (int64_t i = 0; i < tensors; ++i) {
      const uint64_t sign = target.Draw(first + i);
      for (int64_t c = 0; c < p.channels; ++c) {
        for (int64_t h = 0; h < height; ++h) {
          for (int64_t w = 0; w < width; ++w, ++value) {
            *value = std::copysign(
                *value, ((sign ^ place(c, h, w)) & 1) != 0 ? -1.f : 1.f);
          }
        }
      }
    }
  };
  const uint64_t images = 1 + p.channels, filters = images + p.batch;
  give(target.x, p.batch, p.height, p.width, images);
  give(target.k, p.filters, p.kernel_size, p.kernel_size, filters);
}

// One input of each window of a filter is large: they stand as far apart as
// filters are wide, each in some channel.
void Dominant(OperationTarget& target) {
  const Problem& p = target.problem;
  uint64_t draw = 0;
  for (int64_t b = 0; b < p.batch; ++b) {
    const int64_t top = target.Below(draw++, p.kernel_size);
    const int64_t left = target.Below(draw++, p.kernel_size);
    for (int64_t h = top; h < p.height; h += p.kernel_size) {
      for (int64_t w = left; w < p.width; w += p.kernel_size) {
        const int64_t plane = b * p.channels + target.Below(draw++, p.channels);
        float& value = target.x[(plane * p.height + h) * p.width + w];
        // From half of the power on, whatever the input was.
        const float share = std::min(std::abs(value), 1.f) / 2 + 0.5f;
        value = std::copysign(
            Scaled(share, target.Between(draw++, target.a, target.b)), value);
      }
    }
  }
}

void Zeros(OperationTarget& target) {
  for (size_t i = 0; i < target.x.size(); ++i) {
    if (target.Percent(i, target.a)) target.x[i] = 0;
  }
}

void Faint(OperationTarget& target) {
  for (size_t i = 0; i < target.x.size(); ++i) {
    if (target.Percent(i, target.a))
      target.x[i] = Scaled(target.x[i], target.b);
  }
}

void FaintTaps(OperationTarget& target) {
  for (size_t i = 0; i < target.k.size(); ++i) {
    if (target.Percent(i, target.a))
      target.k[i] = Scaled(target.k[i], target.b);
  }
}

void ScaleX(OperationTarget& target) {
  ScaleRange(target.x, 0, target.x.size(), target.a);
}

void ScaleK(OperationTarget& target) {
  ScaleRange(target.k, 0, target.k.size(), target.a);
}

// Images that are almost constant, and filters whose sum is zero.
void Cancel(OperationTarget& target) {
  const int64_t image = target.x.size() / target.problem.batch;
  for (int64_t b = 0; b < target.problem.batch; ++b) {
    const float value = target.x[b * image];
    for (int64_t i = b * image; i < (b + 1) * image; ++i) {
      target.x[i] = Finite(value * (1.0 + Scaled(target.x[i], target.a)));
    }
  }
  const int64_t filter = target.k.size() / target.problem.filters;
  for (int64_t m = 0; m < target.problem.filters; ++m) {
    float* const taps = target.k.data() + m * filter;
    for (int64_t i = 0; i + 1 < filter; i += 2) taps[i + 1] = -taps[i];
    if (filter % 2 == 1) taps[filter - 1] = 0;
  }
}

void Checkerboard(OperationTarget& target) {
  ForPixels(target, [](float& value, int64_t h, int64_t w) {
    value = (h + w) % 2 == 0 ? std::abs(value) : -std::abs(value);
  });
}

void Constant(OperationTarget& target) {
  for (int64_t plane = 0; plane < target.plane_count(); ++plane) {
    float* const first = target.x.data() + plane * target.area();
    std::fill(first, first + target.area(), *first);
  }
}

void Bytes(OperationTarget& target) {
  for (float& value : target.x) {
    value = std::min(255.0f, std::floor(256 * std::abs(value)));
  }
}

void Relu(OperationTarget& target) {
  for (float& value : target.x) {
    value = Finite(std::max(0.0, std::pow(static_cast<double>(value), 3)));
  }
}

// Sets the last bits of all mantissas.
void LowBits(OperationTarget& target) {
  const uint32_t ones = (1u << target.a) - 1;
  for (std::vector<float>* const values : {&target.x, &target.k}) {
    for (float& value : *values) {
      if (value == 0 || !std::isfinite(value)) continue;
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      bits |= ones;
      std::memcpy(&value, &bits, sizeof bits);
    }
  }
}

float LargestOf(const std::vector<float>& values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// The largest sums that cannot overflow.
void NearOverflow(OperationTarget& target) {
  const double largest = static_cast<double>(LargestOf(target.x)) *
                         LargestOf(target.k) *
                         static_cast<double>(target.problem.channels) *
                         static_cast<double>(target.taps());
  if (largest == 0) return;
  const int exponent = 126 - std::ilogb(largest);
  ScaleRange(target.x, 0, target.x.size(), exponent / 2);
  ScaleRange(target.k, 0, target.k.size(), exponent - exponent / 2);
}

void SetNotFinite(const OperationTarget& target, std::vector<float>& values) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kValues[] = {kInfinity, -kInfinity,
                               std::numeric_limits<float>::quiet_NaN()};
  for (int i = 0; i < target.a; ++i) {
    values[target.Below(i, values.size())] = kValues[i % 3];
  }
}

void NotFinite(OperationTarget& target) { SetNotFinite(target, target.x); }

void FiltersNotFinite(OperationTarget& target) {
  SetNotFinite(target, target.k);
}

constexpr OperationKind kOperations[] = {
    {"positive", "the inputs are their absolute values", Positive, 0},
    {"positive-filters", "the weights are their absolute values",
     PositiveFilters, 0},
    {"filter-scales",
     "(a,b): each filter times a power of two from 2^a to 2^b",
     FilterScales,
     2,
     {-60, -60},
     {60, 60}},
    {"channel-scales",
     "(a,b): each input channel times a power of two from 2^a to 2^b, and its "
     "weights times the inverse",
     ChannelScales,
     2,
     {-60, -60},
     {60, 60}},
    {"image-scales",
     "(a,b): each image times a power of two from 2^a to 2^b",
     ImageScales,
     2,
     {-60, -60},
     {60, 60}},
    {"half", "(a): half of each image times 2^a", Half, 1, {-60}, {60}},
    {"rectangle",
     "(a): a rectangle of each image times 2^a",
     Rectangle,
     1,
     {-60},
     {60}},
    {"pixels",
     "(n,a): n inputs of each image are 2^a or -2^a",
     Pixels,
     2,
     {1, -60},
     {40, 60}},
    {"taps",
     "(n,a): n weights of each filter are 2^a or -2^a",
     Taps,
     2,
     {1, -60},
     {10, 60}},
    {"same-sign",
     "inputs and weights have both signs, all products of an output one",
     SameSign, 0},
    {"dominant",
     "(a,b): one input of each window of a filter is from 2^a/2 to 2^b",
     Dominant,
     2,
     {-60, -60},
     {60, 60}},
    {"zeros", "(p): p percent of the inputs are zero", Zeros, 1, {1}, {100}},
    {"faint",
     "(p,a): p percent of the inputs times 2^a",
     Faint,
     2,
     {1, -60},
     {100, 60}},
    {"faint-taps",
     "(p,a): p percent of the weights times 2^a",
     FaintTaps,
     2,
     {1, -60},
     {100, 60}},
    {"scale-x", "(a): all inputs times 2^a", ScaleX, 1, {-149}, {127}},
    {"scale-k", "(a): all weights times 2^a", ScaleK, 1, {-149}, {127}},
    {"cancel",
     "(a): inputs that differ by 2^a of their size, and filters whose sum is "
     "zero",
     Cancel,
     1,
     {-23},
     {0}},
    {"checkerboard", "the inputs' signs alternate", Checkerboard, 0},
    {"constant", "each plane of the inputs has one value", Constant, 0},
    {"bytes", "the inputs are integers from 0 to 255", Bytes, 0},
    {"relu", "the inputs are like activations: half are zero, most are small",
     Relu, 0},
    {"low-bits",
     "(n): the last n bits of all mantissas are ones",
     LowBits,
     1,
     {1},
     {22}},
    {"near-overflow", "the largest sums that cannot overflow", NearOverflow, 0},
    {"not-finite",
     "(n): n inputs are infinities or NaN",
     NotFinite,
     1,
     {1},
     {1000},
     false},
    {"filters-not-finite",
     "(n): n weights are infinities or NaN",
     FiltersNotFinite,
     1,
     {1},
     {1000},
     false},
};

}  // namespace

absl::Span<const OperationKind> OperationKinds() { return kOperations; }

}  // namespace convlab
