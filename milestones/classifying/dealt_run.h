// A run of classify over all images: the devices of this process, and those of
// other ranks, take pieces; what they answer is written, told and recorded.
#ifndef MILESTONES_CLASSIFYING_DEALT_RUN_H_
#define MILESTONES_CLASSIFYING_DEALT_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/network/network.h"
#include "common/ranks/ranks.h"
#include "common/record/classify_record.h"
#include "common/weights/weights.h"
#include "milestones/classifying/device.h"
#include "milestones/classifying/input.h"
#include "milestones/classifying/options.h"
#include "milestones/classifying/output.h"
#include "milestones/classifying/rank_slots.h"

namespace convlab {

// What there is before the first image is read. This process is rank 0.
struct DealtRun {
  const ClassifyOptions& options;
  const std::vector<std::string>& command;
  std::string started;  // RFC 3339, UTC
  Ranks& ranks;
  std::vector<ClassifyDevice> devices;
  ClassifyInput input;
  NetworkWeights weights;
  int64_t count = 0, block = 0;  // images
  int64_t gpu_piece = 0;         // WorkerJob::gpu_piece of all workers
  RankSlots slots = {};          // for the other ranks of this host

  bool gpu() const { return devices[0].gpu; }
  const Network& network() const { return *options.model.network; }
  int64_t image_bytes() const {
    return int64_t{input.images->height()} * input.images->width();
  }
  // Threads that read for a worker.
  int readers() const;
};

// Prints a line on standard error.
void Tell(const std::string& text);

// Classifies the images behind those that are done, prints what came out, and
// writes the record if there is to be one. `lost_any` is whether another rank
// was lost on the way, with which the ranks cannot end in order.
absl::Status ClassifyDealt(const DealtRun& run, Output& output, bool& lost_any);

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_DEALT_RUN_H_
