// How fast classify is on many GPUs, from the times of its parts in the records
// of real runs; the table and the chart of docs/cluster.md. Pure functions, as
// in tables.h.
#ifndef REPORTS_CLUSTER_MODEL_H_
#define REPORTS_CLUSTER_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/classify_record.h"
#include "reports/document/document.h"

namespace convlab {

// What the parts of a run take. All of them overlap.
struct ClusterParts {
  double reader = 0;   // images that a thread reads in a second
  double compute = 0;  // that a GPU computes, with the copies to it
  double write = 0;    // that rank 0 gathers and writes
  double deal = 0;     // that rank 0 deals
};

// Those of a run, which has computed images. `deal_ns`: of a piece, by itself.
ClusterParts PartsOf(const ClassifyRecord& record, double deal_ns);

// Who reads and writes.
enum class ClusterSetup {
  kComputeAlone,    // nobody: no run is faster
  kRankZeroReads,   // rank 0 does both
  kEachReads,       // each rank reads, and rank 0 writes
  kRunForEachHost,  // an array of runs on `kHostGpus` GPUs each
};
inline constexpr int64_t kHostGpus = 8;

// Images per second. `readers`: threads for each GPU.
double ClusterRate(const ClusterParts& parts, ClusterSetup setup, int64_t gpus,
                   int readers);

// The runs on one GPU and on several, of classify-1.json, classify-2.json ...
// in `folder`; none if there is no classify-1.json.
absl::StatusOr<std::vector<ClassifyRecord>> ReadClusterRuns(
    const std::string& folder);

// The measured runs beside the model, and what it says of 10^12 images.
std::string ClusterTables(const std::vector<ClassifyRecord>& runs);

// Images per second over 1 to 10,000 GPUs.
Chart ClusterChart(const std::vector<ClassifyRecord>& runs);

}  // namespace convlab

#endif  // REPORTS_CLUSTER_MODEL_H_
