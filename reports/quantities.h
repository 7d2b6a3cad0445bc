// Numbers as reports print them.
#ifndef REPORTS_QUANTITIES_H_
#define REPORTS_QUANTITIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/hardware/rates.h"
#include "common/record/run_record.h"

namespace convlab {

// Formats seconds with at least three significant digits: "0.041000".
std::string Seconds(double seconds);

// Formats ms as in "1.234".
std::string Milliseconds(double nanoseconds);

// Formats ms of several convolutions as in "1.234 + 5.678".
std::string MillisecondsOf(const std::vector<double>& nanoseconds);

// Formats a ratio as in "12.30×", or a dash if there is nothing to compare.
std::string Ratio(double slower, double faster);
std::string Ratio(const std::optional<double>& ratio);

// Explains the floor (common/hardware/floor.h), with its rates. `source` says
// where these come from: "the peaks in the GPU's data sheet".
std::string FloorText(const Rates& rates, absl::string_view source);

// "10,000".
std::string Count(int64_t count);

// "1 image", "2 images".
std::string Plural(int64_t count, const char* noun);

// Describes what a run used: "NVIDIA H200", "AMD EPYC, 2 threads, avx512".
std::string DeviceOf(const RunRecord& record);

// Median and spread of samples, in ns.
struct Spread {
  double median = 0;
  double low = 0, high = 0;  // first and third quartile
  double least = 0;
  size_t samples = 0;
};
// Quartiles are interpolated between the two nearest samples; `samples` is not
// empty.
Spread SpreadOf(std::vector<int64_t> samples);

// The same for the sum over the convolutions of their op times, or of other
// samples. Its median is the sum of their
// medians, the course's measure; the quartiles are those of the sums of the
// repetitions, and there are no samples unless all convolutions have equally
// many.
Spread SpreadOfSum(const std::vector<ConvolutionRecord>& convolutions,
                   std::vector<int64_t> ConvolutionRecord::*samples =
                       &ConvolutionRecord::op_time_ns);

enum class Difference { kUnknown, kWithinSpread, kBeyondSpread };

// A difference counts where the middle halves of the samples (first to third
// quartile) do not overlap. It is not known where one side has fewer than
// three.
inline constexpr size_t kSamplesForSpread = 3;
inline constexpr char kSpreadRule[] =
    "A difference counts where the middle halves of the samples (first to "
    "third quartile) do not overlap; with fewer than three samples on a side "
    "the spread is not known.";
Difference Compare(const Spread& a, const Spread& b);

// "beyond the spread", "within the spread", "spread not known".
std::string Name(Difference difference);

}  // namespace convlab

#endif  // REPORTS_QUANTITIES_H_
