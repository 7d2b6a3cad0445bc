// In place of mpi_ranks.cc in a build without Open MPI's header.
#include "common/ranks/mpi_ranks.h"

namespace convlab {

absl::StatusOr<std::unique_ptr<Ranks>> JoinMpi(const RankPlace&) {
  return absl::UnavailableError(
      "this program was built without Open MPI (Debian's libopenmpi-dev)");
}

}  // namespace convlab
