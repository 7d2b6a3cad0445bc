// Arguments that the milestones and classify share. The errors, all of them
// InvalidArgument, say what was found and what was expected.
#ifndef MILESTONES_ARGUMENTS_H_
#define MILESTONES_ARGUMENTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

enum class Device { kAuto, kCpu, kGpu };

absl::StatusOr<Device> ParseDevice(const std::string& text);

// A number of images. The upper bound is checked where the data set's size is
// known.
absl::StatusOr<int64_t> ParseSize(const std::string& text);

// Whether a positional argument is a size, right or wrong.
bool LooksLikeSize(absl::string_view text);

// Whether an unexpected number of correct answers fails a run that does not say
// so itself: where the environment sets CI.
bool StrictByDefault();

absl::Status CheckRange(const char* flag, int value, int least, int most);

}  // namespace convlab

#endif  // MILESTONES_ARGUMENTS_H_
