// A worker: a network on a device, which computes pieces while its next ones
// are read.
#ifndef MILESTONES_CLASSIFYING_WORKER_H_
#define MILESTONES_CLASSIFYING_WORKER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/record/classify_record.h"
#include "kernels/compiled/compiled.h"
#include "milestones/classifying/deal.h"

namespace convlab {

struct WorkerOptions {
  int classes = 0;
  bool logits = false;  // they are asked for
  int readers = 1;      // threads that read
  // Memory for pieces, for each as much as the largest needs; those that have
  // none of it have their own.
  std::vector<uint8_t*> memory = {};
};

// The pieces that a worker has at a time: one for each thread that reads, and
// those that are computed and answered.
inline int64_t PiecesOf(int readers) { return readers + 2; }

// Computes pieces of the feed until there are no more, and adds what it did to
// `share`, with the error with which the worker was lost, if it was. Returns
// the network's error; one of reading is the feed's to tell (PieceFeed::Take).
absl::Status WorkOnPieces(PieceFeed& feed, int worker, CompiledNetwork& network,
                          const WorkerOptions& options, ClassifyShare& share);

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_WORKER_H_
