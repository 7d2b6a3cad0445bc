#include "milestones/course_output.h"

#include <charconv>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace convlab {
namespace {

// Formats correct / images as Python prints a float: with the fewest digits
// that give the same number, with a point, and with an exponent below 1e-4.
std::string Share(int64_t correct, int64_t images) {
  const double share = static_cast<double>(correct) / images;
  const auto format = share != 0 && share < 1e-4 ? std::chars_format::scientific
                                                 : std::chars_format::fixed;
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), share, format).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string OpTimeLine(double nanoseconds) {
  return absl::StrFormat("Op Time: %.6f", nanoseconds * 1e-9);
}

std::string CorrectnessLine(int64_t correct, int64_t images,
                            absl::string_view model) {
  return absl::StrCat("Correctness: ", Share(correct, images),
                      " Model: ", std::string(model));
}

std::string EvalMetricLine(int64_t correct, int64_t images) {
  return absl::StrCat("EvalMetric: {'accuracy': ", Share(correct, images), "}");
}

std::string BatchSizeLine(int64_t images) {
  return absl::StrCat("Test batch size: ", images);
}

std::vector<std::string> ConvolutionLines(std::optional<double> layer_ns,
                                          double op_ns) {
  // Six digits, as C++ streams print a float.
  const std::string op = absl::StrFormat("Op Time: %g ms", op_ns * 1e-6);
  if (!layer_ns) return {"Conv-CPU==", op};
  return {"Conv-GPU==", absl::StrFormat("Layer Time: %g ms", *layer_ns * 1e-6),
          op};
}

std::string TestAccuracyLine(int64_t correct, int64_t images) {
  return absl::StrFormat("Test Accuracy: %g",
                         static_cast<float>(correct) / images);
}

}  // namespace convlab
