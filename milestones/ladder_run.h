// The fourth milestone: every variant of the ladder, each on its own.
#ifndef MILESTONES_LADDER_RUN_H_
#define MILESTONES_LADDER_RUN_H_

#include "absl/status/status.h"
#include "milestones/rung_process.h"
#include "milestones/session.h"

namespace convlab {

// For each variant of the session's backend that supports the network: verifies
// it on each layer at a small batch, times the network with it, prints the
// course's lines under a heading and adds it to the record; on a GPU with cuDNN
// measures that too; then prints the table. Variants run in a process of their
// own (rung_process.h), unless the run is traced. Internal, naming them, if
// variants failed.
absl::Status RunLadder(Session& session);

// Runs the rungs that RunLadder asked this process for.
void RunRungs(Session& session, const RungReporter& reporter);

}  // namespace convlab

#endif  // MILESTONES_LADDER_RUN_H_
