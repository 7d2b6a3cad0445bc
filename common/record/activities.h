// The activities of a traced run: every kernel, copy and memset of the GPU and
// every API call of the host, with its time. MakeProfile sums them up; trace.h
// shows them as a timeline.
#ifndef COMMON_RECORD_ACTIVITIES_H_
#define COMMON_RECORD_ACTIVITIES_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/record/profile.h"

namespace convlab {

// Times are in ns since the tracing began.
struct GpuActivity {
  enum class Kind { kKernel, kCopy, kMemset };

  Kind kind = Kind::kKernel;
  std::string name;  // as ProfileEntry has it
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t device = 0;
  int64_t stream = 0;
  int64_t correlation = 0;  // shared with the API call that started it
  // Of kernels.
  std::array<int64_t, 3> grid = {};
  std::array<int64_t, 3> block = {};
  int64_t registers_per_thread = 0;
  int64_t static_shared_bytes = 0;   // per block
  int64_t dynamic_shared_bytes = 0;  // likewise
  // Of copies and memsets.
  int64_t bytes = 0;
};

struct ApiCall {
  std::string name;  // as ApiName gives it
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t thread = 0;  // the system's thread id
  int64_t correlation = 0;
};

// In any order.
struct Activities {
  std::string tool;  // "CUPTI"
  std::string version;
  int64_t process = 0;  // the process id, also the id of its first thread
  std::vector<GpuActivity> gpu;
  std::vector<ApiCall> api;
  std::string missing;  // describes lost records for the user; or empty
};

// The name of a function as the programmer knows it: without the suffixes of
// its version and of per-thread streams ("cudaMalloc_v3020",
// "cuMemcpy_v2_ptds"), without surrounding blanks, and "cudaLaunchKernel" for
// the functions behind <<<>>>. A name that is only a suffix stays.
std::string ApiName(absl::string_view name);

// One entry per name, the longest total first. A call that is made by another
// call of the same thread is part of that call and has no entry: the runtime
// calls the driver, and time must not count twice. So cudaLaunchKernel is
// listed without cuLaunchKernel, as in nvprof and nsys.
Profile MakeProfile(const Activities& activities);

}  // namespace convlab

#endif  // COMMON_RECORD_ACTIVITIES_H_
