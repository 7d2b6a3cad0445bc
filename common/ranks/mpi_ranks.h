// Ranks by Open MPI.
#ifndef COMMON_RANKS_MPI_RANKS_H_
#define COMMON_RANKS_MPI_RANKS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/ranks/ranks.h"

namespace convlab {

struct Mpi;

// Of all processes that the launcher started with this one, which is there.
// Unavailable, with the reason, if Open MPI cannot be opened or begun, or this
// build has none; InvalidArgument if CONVLAB_SILENCE is no number of seconds.
absl::StatusOr<std::unique_ptr<Ranks>> JoinMpi(const RankPlace& place);
// The same by these functions (open_mpi.h). Not in a build that has none.
absl::StatusOr<std::unique_ptr<Ranks>> JoinMpi(const Mpi& mpi,
                                               const RankPlace& place);

}  // namespace convlab

#endif  // COMMON_RANKS_MPI_RANKS_H_
