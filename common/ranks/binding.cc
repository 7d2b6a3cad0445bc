#include "common/ranks/binding.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files/files.h"
#include "common/files/process_stat.h"
#include "common/parallel/parallel.h"

namespace convlab {
namespace {

std::string Variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// Whether mpirun was told which CPUs a rank gets: --bind-to, --cpu-set,
// --cpus-per-rank, a file of ranks, or --map-by with PE=n.
bool UserBinds() {
  const std::string policy = Variable("OMPI_MCA_hwloc_base_binding_policy");
  if (!policy.empty() && !absl::StartsWith(policy, "none")) return true;
  for (const char* name :
       {"OMPI_MCA_hwloc_base_cpu_set", "OMPI_MCA_hwloc_base_cpu_list",
        "OMPI_MCA_rmaps_base_cpus_per_rank", "OMPI_MCA_orte_rankfile"}) {
    if (!Variable(name).empty()) return true;
  }
  return absl::StrContains(Variable("OMPI_MCA_rmaps_base_mapping_policy"),
                           "PE=");
}

int ParentOf(int process) {
  // Behind the name: the state and the parent.
  const auto stat = ReadFile(absl::StrCat("/proc/", process, "/stat"));
  if (!stat.ok()) return 0;
  const std::vector<std::string> fields =
      absl::StrSplit(FieldsBehindName(*stat), ' ');
  int parent = 0;
  return fields.size() > 1 && absl::SimpleAtoi(fields[1], &parent) ? parent : 0;
}

// Those of the nearest process above this one that has more: mpirun, or its
// daemon on this host. Shells may stand between.
std::optional<cpu_set_t> LaunchersCpus(const cpu_set_t& own) {
  constexpr int kFarthest = 8;
  int process = getppid();
  for (int i = 0; i < kFarthest && process > 1; ++i) {
    cpu_set_t cpus, both;
    if (sched_getaffinity(process, sizeof(cpus), &cpus) != 0) break;
    CPU_AND(&both, &cpus, &own);
    if (CPU_COUNT(&cpus) > CPU_COUNT(&own) && CPU_EQUAL(&both, &own)) {
      return cpus;
    }
    process = ParentOf(process);
  }
  return std::nullopt;
}

}  // namespace

int ThreadsOfRank(int wanted, int* left) {
  *left = 0;
  const int bound = Workers::Available();
  int ranks = 0;
  const bool ours =
      absl::SimpleAtoi(Variable("OMPI_COMM_WORLD_LOCAL_SIZE"), &ranks) &&
      ranks > 0 && !UserBinds();
  if (!ours) return wanted > 0 ? wanted : bound;
  if (wanted > 0 && wanted <= bound) return wanted;
  cpu_set_t own;
  if (Variable("OMPI_MCA_orte_bound_at_launch") == "1" &&
      sched_getaffinity(0, sizeof(own), &own) == 0) {
    const std::optional<cpu_set_t> cpus = LaunchersCpus(own);
    if (cpus && sched_setaffinity(0, sizeof(*cpus), &*cpus) == 0) *left = bound;
  }
  return wanted > 0 ? wanted : std::max(1, Workers::Available() / ranks);
}

}  // namespace convlab
