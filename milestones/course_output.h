// The lines of the course's programs on standard output, which graders' scripts
// parse.
#ifndef MILESTONES_COURSE_OUTPUT_H_
#define MILESTONES_COURSE_OUTPUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace convlab {

// "Op Time: 0.021170", in seconds.
std::string OpTimeLine(double nanoseconds);

// "Correctness: 0.7653 Model: ece408"
std::string CorrectnessLine(int64_t correct, int64_t images,
                            absl::string_view model);

// "EvalMetric: {'accuracy': 0.8236}"
std::string EvalMetricLine(int64_t correct, int64_t images);

// The lines of the terms from FA20 on.

// "Test batch size: 10000"
std::string BatchSizeLine(int64_t images);

// "Conv-GPU==", "Layer Time: 61.8 ms", "Op Time: 1.74 ms" for one convolution:
// the time of the whole operation, absent on the CPU, and of the op.
std::vector<std::string> ConvolutionLines(std::optional<double> layer_ns,
                                          double op_ns);

// "Test Accuracy: 0.8714"
std::string TestAccuracyLine(int64_t correct, int64_t images);

}  // namespace convlab

#endif  // MILESTONES_COURSE_OUTPUT_H_
