// The record of a benchmark of whole networks: how long a call takes for some
// number of images, by ours and by a library's kernels, in the same run.
#ifndef COMMON_RECORD_NETWORK_RECORD_H_
#define COMMON_RECORD_NETWORK_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/benchmark_run.h"

namespace convlab {

inline constexpr char kNetworkSchema[] = "convlab.network/1";

// From where to where a call takes its images.
inline constexpr char kHostPath[] = "host";      // bytes there -> labels there
inline constexpr char kDevicePath[] = "device";  // the same, in device memory
inline constexpr char kFloatsPath[] = "floats";  // floats on the device ->
                                                 // logits there
inline constexpr char kDevicesPath[] = "devices";  // as kDevicePath, on several
                                                   // GPUs at the same time

// The times of calls with so many images.
struct NetworkRow {
  std::string network;
  int64_t images = 0;
  std::string provider;  // "convlab", or "cudnn" for cuDNN and cuBLAS
  std::string path;      // one of those above
  int gpus = 1;          // that share the images
  double p50_us = 0, p90_us = 0, p99_us = 0, least_us = 0;
  double images_per_s = 0;  // at the median
  int samples = 0;
  std::optional<double> sm_clock_mhz;  // seen between the calls
  // The library's plans for the convolutions, in their order.
  std::vector<std::string> plans;
  // What the stages take by themselves, enlarging first (CompiledNetwork).
  std::vector<double> stages_us;
};

// Rows that are missing, and why.
struct NetworkOmission {
  std::string network;
  int64_t images = 0;
  std::string provider;
  std::string path;  // empty: all
  std::string reason;
};

struct NetworkRecord : BenchmarkRun {
  std::string peer;  // "cuDNN 9.14.0"; empty: none
  std::vector<NetworkRow> rows;
  std::vector<NetworkOmission> omissions;
};

// The row of these; null if there is none.
const NetworkRow* FindRow(const NetworkRecord& record,
                          absl::string_view network, int64_t images,
                          absl::string_view provider, absl::string_view path,
                          int gpus = 1);

// InvalidArgument, naming the first such field, if a value is one that no
// benchmark has: a time that is not positive, percentiles that fall, a rate
// that is not that of the median, two rows of the same.
absl::Status CheckValues(const NetworkRecord& record);

std::string ToJson(const NetworkRecord& record);
// Like ParseRunRecord and ReadRunRecord.
absl::StatusOr<NetworkRecord> ParseNetworkRecord(absl::string_view json);
absl::StatusOr<NetworkRecord> ReadNetworkRecord(const std::string& path);

}  // namespace convlab

#endif  // COMMON_RECORD_NETWORK_RECORD_H_
