#include "common/ranks/ranks.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/files/process_stat.h"
#include "common/ranks/mpi_ranks.h"
#include "common/ranks/quiet_ranks.h"
#include "common/record/build_info.h"
#include "common/status/status.h"

namespace convlab {
namespace {

std::string ThisHost() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

// The inode of this process's namespace of process numbers.
uint64_t ThisProcessSpace() {
  struct stat info;
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

// The first of these variables that is a number; -1: none.
int FromEnvironment(const std::vector<const char*>& names) {
  for (const char* name : names) {
    const char* const text = std::getenv(name);
    int value = 0;
    if (text != nullptr && absl::SimpleAtoi(text, &value)) return value;
  }
  return -1;
}

}  // namespace

RankPlace Ranks::ThisPlace() {
  return {ThisHost(), getpid(), ThisProcessSpace(), kGitRevision};
}

absl::StatusOr<std::unique_ptr<Ranks>> Ranks::Join() {
  // Open MPI's, that of PMI-2, and Slurm's beside PMIx.
  int size = FromEnvironment({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
  if (size < 0 && std::getenv("PMIX_RANK") != nullptr) {
    size = FromEnvironment({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  }
  if (size <= 1) {
    return std::make_unique<QuietRanks>(0, std::vector<RankPlace>{ThisPlace()});
  }
  auto joined = JoinMpi(ThisPlace());
  if (!joined.ok()) {
    return Annotate(joined.status(),
                    absl::StrCat("this process is one of ", size));
  }
  return joined;
}

int Ranks::EnvironmentRank() {
  return std::max(
      0, FromEnvironment({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}));
}

int Ranks::local_rank() const {
  int lower = 0;
  for (int i = 0; i < rank_; ++i)
    lower += places_[i].host == places_[rank_].host;
  return lower;
}

absl::Status Ranks::CheckSamePrograms() const {
  const std::string& expected = places_[0].program;
  for (int i = 1; i < size(); ++i) {
    const std::string& found = places_[i].program;
    if (found == expected) continue;
    return absl::InvalidArgumentError(absl::StrCat(Name(i), " runs revision ",
                                                   found, ", expected ",
                                                   expected, " as on rank 0"));
  }
  return absl::OkStatus();
}

std::string Ranks::Name(int rank) const {
  if (size() == 1) return "";
  return absl::StrCat("rank ", rank, " on ", places_[rank].host);
}

bool Ranks::HasEnded(int rank) const {
  const RankPlace& place = places_[rank];
  const RankPlace& own = places_[rank_];
  if (place.host != own.host || own.process_space == 0 ||
      place.process_space != own.process_space) {
    return false;
  }
  const auto stat = ReadFile(absl::StrCat("/proc/", place.process, "/stat"));
  if (!stat.ok()) return absl::IsNotFound(stat.status());
  // A process that has ended may wait for its parent.
  return absl::StartsWith(FieldsBehindName(*stat), "Z");
}

std::vector<int> Ranks::FindEnded() const {
  std::vector<int> ended;
  for (int i = 0; i < size(); ++i) {
    if (i != rank_ && HasEnded(i)) ended.push_back(i);
  }
  return ended;
}

}  // namespace convlab
