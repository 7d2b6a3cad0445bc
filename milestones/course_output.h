// The lines of the course's programs on standard output, which graders' scripts
// parse.
#ifndef MILESTONES_COURSE_OUTPUT_H_
#define MILESTONES_COURSE_OUTPUT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace convlab {

// "Op Time: 0.021170", in seconds.
std::string OpTimeLine(double nanoseconds);

// "Correctness: 0.7653 Model: ece408"
std::string CorrectnessLine(int64_t correct, int64_t images,
                            absl::string_view model);

// "EvalMetric: {'accuracy': 0.8236}"
std::string EvalMetricLine(int64_t correct, int64_t images);

}  // namespace convlab

#endif  // MILESTONES_COURSE_OUTPUT_H_
