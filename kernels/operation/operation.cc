#include "kernels/operation/operation.h"

#include <initializer_list>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

absl::Status Wrong(const Operation& operation, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("operation ", ToString(operation), ": ", what));
}

// Whether the product of the positive factors is at most 2^63 - 1.
bool ProductFits(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return false;
  }
  return true;
}

Epilogue PoolingOf(const Operation& operation) {
  Epilogue epilogue;
  epilogue.pool = operation.pool;
  return epilogue;
}

}  // namespace

absl::Status CheckOperation(const Operation& operation) {
  const Operation& o = operation;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const struct {
    const char* name;
    int64_t value, least, most;
  } ranges[] = {{"the batch", o.batch, 1, kMost},
                {"the number of channels", o.channels, 1, kMost},
                {"the height", o.height, 1, kMost},
                {"the width", o.width, 1, kMost},
                {"the number of filters", o.filters, 1, kMost},
                {"the filters' height", o.kernel_height, 1, kMost},
                {"the filters' width", o.kernel_width, 1, kMost},
                {"the vertical stride", o.stride_y, 1, kMaxStride},
                {"the horizontal stride", o.stride_x, 1, kMaxStride},
                {"the padding at the top", o.top, 0, kMost},
                {"the padding at the bottom", o.bottom, 0, kMost},
                {"the padding on the left", o.left, 0, kMost},
                {"the padding on the right", o.right, 0, kMost}};
  for (const auto& [name, value, least, most] : ranges) {
    if (value < least || value > most) {
      return Wrong(o, absl::StrCat(name, " is ", value, ", expected ", least,
                                   " to ", most));
    }
  }
  if (o.padded_height() > kMost || o.padded_width() > kMost) {
    return Wrong(o, absl::StrCat("the padded image is ", o.padded_height(), "x",
                                 o.padded_width(), ", expected at most ", kMost,
                                 " each way"));
  }
  if (o.kernel_height > o.padded_height() ||
      o.kernel_width > o.padded_width()) {
    return Wrong(
        o, absl::StrCat("the filters are larger than the padded image of ",
                        o.padded_height(), "x", o.padded_width()));
  }
  if (!ProductFits(
          {4, o.batch, o.channels, o.padded_height(), o.padded_width()}) ||
      !ProductFits(
          {4, o.filters, o.channels, o.kernel_height, o.kernel_width}) ||
      !ProductFits({8, o.batch, o.filters, o.sums_height(), o.sums_width(),
                    o.channels, o.kernel_height, o.kernel_width})) {
    return Wrong(o, "too large to be counted in 64 bits");
  }
  if (o.pool.size > 0 && o.pool.stride < 1) {
    return Wrong(o, absl::StrCat("the pooling's stride is ", o.pool.stride,
                                 ", expected 1 or more"));
  }
  // What a convolution with filters of 1x1 puts out is as large as it takes in.
  const Problem sums = {o.batch,        1,         o.sums_height(),
                        o.sums_width(), o.filters, 1};
  if (const absl::Status status = CheckEpilogue(sums, PoolingOf(o));
      !status.ok()) {
    return Wrong(
        o, absl::StrCat("expected windows of the pooling within the output of ",
                        o.sums_height(), "x", o.sums_width()));
  }
  return absl::OkStatus();
}

std::string ToString(const Operation& o) {
  std::string text = absl::StrCat("B=", o.batch, " C=", o.channels, " ",
                                  o.height, "x", o.width, " M=", o.filters, " ",
                                  o.kernel_height, "x", o.kernel_width);
  if (o.stride_y != 1 || o.stride_x != 1) {
    absl::StrAppend(&text, " stride ", o.stride_y, "x", o.stride_x);
  }
  if (o.top != 0 || o.bottom != 0 || o.left != 0 || o.right != 0) {
    absl::StrAppend(&text, " padding ", o.top, ",", o.bottom, ",", o.left, ",",
                    o.right);
  }
  if (o.channels_last) absl::StrAppend(&text, " NHWC");
  if (o.halves) absl::StrAppend(&text, " of halves");
  if (!o.has_epilogue()) return text;
  static constexpr float kSome = 0;
  const Epilogue epilogue = {o.bias ? &kSome : nullptr, o.activation, o.pool};
  return absl::StrCat(text, " with ", ToString(epilogue));
}

bool IsProblem(const Operation& operation) {
  return operation.is_plain() && operation.stride_y == 1 &&
         operation.stride_x == 1 &&
         operation.kernel_height == operation.kernel_width;
}

Problem PaddedProblem(const Operation& o) {
  return {o.batch,          o.channels, o.padded_height(),
          o.padded_width(), o.filters,  o.kernel_height};
}

Operation WithoutPadding(const Operation& operation) {
  Operation bare = operation;
  bare.top = bare.bottom = bare.left = bare.right = 0;
  return bare;
}

}  // namespace convlab
