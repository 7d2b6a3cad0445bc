// The tables and charts of the record of whole networks: ours beside the
// library's layers. Pure functions, as in tables.h.
#ifndef REPORTS_NETWORK_TABLES_H_
#define REPORTS_NETWORK_TABLES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/record/network_record.h"
#include "reports/document/document.h"

namespace convlab {

// Reads a record of whole networks, which may be missing. The error names the
// file if it is not a record with rows.
absl::StatusOr<std::optional<NetworkRecord>> ReadNetworks(
    const std::string& path);

// README's digest: a row per network, "ours : the library's" for the times of
// 1, 100 and 10,000 images, after a caption that names the device.
std::string NetworksDigest(const NetworkRecord& record);

// A line per network, number of images and path: our median and percentiles,
// the library's, the speedup, the clock.
std::string NetworksFigures(const NetworkRecord& record);

// The networks on 1, 2 and more GPUs at the same time: our median, and the
// images per second beside those of one GPU.
std::string SeveralGpusTable(const NetworkRecord& record);

// Images per second, and the latency of a call, over the number of images, of
// fa19 or, if it was not measured, the first network: ours and the library's.
std::vector<Chart> NetworkCharts(const NetworkRecord& record);

}  // namespace convlab

#endif  // REPORTS_NETWORK_TABLES_H_
