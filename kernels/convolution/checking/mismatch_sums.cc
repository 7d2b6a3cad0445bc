#include "kernels/convolution/checking/mismatch_sums.h"

#include "absl/strings/str_cat.h"

namespace convlab {
namespace {

// Sums that leave out channels.
void AddPartsOfChannels(const Problem& problem, std::vector<WrongSum>& all) {
  const int64_t channels = problem.channels;
  const auto only = [&](int64_t count, const std::string& text) {
    all.push_back({text, [count](Product& t) { return t.c < count; }});
  };
  if (channels > 1) only(1, "only channel 0 is summed");
  if (channels > 2) only(channels - 1, "the last channel is left out");
  for (int64_t tile = 2; tile <= 64; tile *= 2) {
    const int64_t whole = channels / tile * tile;
    if (whole > 1 && whole < channels - 1) {
      only(whole, absl::StrCat("only the first ", whole, " of ", channels,
                               " channels are summed"));
    }
  }
  if (channels > 1) {
    all.push_back(
        {"channel 0 is left out", [](Product& t) { return t.c > 0; }});
  }
}

// Sums that leave out rows or columns of the filters.
void AddPartsOfFilters(const Problem& problem, std::vector<WrongSum>& all) {
  const int64_t last = problem.kernel_size - 1;
  if (last == 0) return;
  all.push_back({"the last row of each filter is left out",
                 [last](Product& t) { return t.p < last; }});
  all.push_back({"the last column of each filter is left out",
                 [last](Product& t) { return t.q < last; }});
  all.push_back({"the first row of each filter is left out",
                 [](Product& t) { return t.p > 0; }});
  all.push_back({"the first column of each filter is left out",
                 [](Product& t) { return t.q > 0; }});
  all.push_back({"the last row and column of each filter are left out",
                 [last](Product& t) { return t.p < last && t.q < last; }});
}

}  // namespace

std::vector<WrongSum> WrongSums(const Problem& problem) {
  const int64_t size = problem.kernel_size;
  const int64_t last = size - 1;
  const int64_t channels = problem.channels, filters = problem.filters;
  const int64_t height = problem.height, width = problem.width;
  std::vector<WrongSum> all;
  if (size > 1) {
    all.push_back({"the filters are transposed (rows and columns exchanged)",
                   [=](Product& t) {
                     t.weight += (t.q - t.p) * size + t.p - t.q;
                     return true;
                   }});
    all.push_back(
        {"the filters are flipped in both directions (a true "
         "convolution; this one is a cross-correlation)",
         [=](Product& t) {
           t.weight += (last - 2 * t.p) * size + last - 2 * t.q;
           return true;
         }});
    all.push_back({"the filters are flipped upside down", [=](Product& t) {
                     t.weight += (last - 2 * t.p) * size;
                     return true;
                   }});
    all.push_back({"the filters are flipped left to right", [=](Product& t) {
                     t.weight += last - 2 * t.q;
                     return true;
                   }});
  }
  AddPartsOfChannels(problem, all);
  AddPartsOfFilters(problem, all);
  const int64_t taps = size * size;
  if (channels > 1) {
    all.push_back(
        {"every channel has the weights of channel 0", [=](Product& t) {
           t.weight -= t.c * taps;
           return true;
         }});
    all.push_back(
        {"every channel reads channel 0 of the input", [=](Product& t) {
           t.input -= t.c * height * width;
           return true;
         }});
    if (filters > 1) {
      all.push_back({"the filters are read in the order channel, filter",
                     [=](Product& t) {
                       const int64_t plane = t.weight / taps;
                       const int64_t m = plane / channels;
                       t.weight += (t.c * filters + m - plane) * taps;
                       return true;
                     }});
    }
  }
  if (height != width) {
    all.push_back(
        {"the input's height and width are exchanged", [=](Product& t) {
           const int64_t plane = t.input / (height * width);
           const int64_t row = t.input / width % height;
           const int64_t column = t.input % width;
           t.input = plane * height * width + row * height + column;
           return true;
         }});
  }
  return all;
}

double SumOf(const WrongSum& sum, const Problem& problem, const float* x,
             const float* k, const OutputPlace& place) {
  const int64_t size = problem.kernel_size;
  const int64_t inputs = problem.input_elements();
  double result = 0;
  for (int64_t c = 0; c < problem.channels; ++c) {
    for (int64_t p = 0; p < size; ++p) {
      for (int64_t q = 0; q < size; ++q) {
        Product product = {c, p, q, 0, 0};
        product.weight =
            ((place.m * problem.channels + c) * size + p) * size + q;
        product.input =
            ((place.b * problem.channels + c) * problem.height + place.h + p) *
                problem.width +
            place.w + q;
        // An altered product may read past the end, where a kernel finds
        // anything.
        if (!sum.alter(product) || product.input >= inputs) continue;
        result += static_cast<double>(x[product.input]) * k[product.weight];
      }
    }
  }
  return result;
}

}  // namespace convlab
