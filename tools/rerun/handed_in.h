// What participants handed in, to be measured again.
#ifndef TOOLS_RERUN_HANDED_IN_H_
#define TOOLS_RERUN_HANDED_IN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

struct HandedIn {
  std::string name;     // of the participant's folder
  std::string kernel;   // the path of the kernel's file, or of its folder
  std::string network;  // of the newest record; empty if there is none
  std::string failure;  // why there is no kernel to run; or empty
};

// Looks into each folder below `folder`, in the order of their names. A
// participant's kernel is the file whose name the newest record has or, without
// such a record, the only file of the device's kind: .cu and .cuh on the GPU,
// .cc, .cpp and .h on the CPU, .so on both. NotFound if `folder` is none;
// InvalidArgument if there is no folder in it.
absl::StatusOr<std::vector<HandedIn>> FindHandedIn(const std::string& folder,
                                                   absl::string_view device);

}  // namespace convlab

#endif  // TOOLS_RERUN_HANDED_IN_H_
