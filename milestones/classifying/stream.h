// Classifies a stream of images: while a block of them is computed, the next
// one is read and the one before is written.
#ifndef MILESTONES_CLASSIFYING_STREAM_H_
#define MILESTONES_CLASSIFYING_STREAM_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dataset/idx.h"
#include "kernels/compiled/compiled.h"
#include "milestones/classifying/answers.h"
#include "milestones/classifying/answers_file.h"

namespace convlab {

// How long each of the three was at work, in nanoseconds. They overlap.
struct StreamTimes {
  int64_t read_ns = 0, compute_ns = 0, write_ns = 0;
};

struct StreamOptions {
  int64_t count;  // images to classify; the stream has as many at least
  int64_t block;  // images of a block; three of them are in memory
  int classes;
  bool logits = false;                         // write them, not the labels
  std::function<void(int64_t done)> progress;  // called after each block
};

// Adds all answers to `answers` and, unless `file` is null, writes them to it;
// the caller commits it.
absl::StatusOr<StreamTimes> ClassifyStream(IdxImageStream& images,
                                           CompiledNetwork& compiled,
                                           const StreamOptions& options,
                                           Answers& answers, AnswersFile* file);

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_STREAM_H_
