// What a run leaves: answers in a file, and what is told about them. With
// --resume both are kept when the run fails, in a file beside the answers, for
// another run to go on with.
#ifndef MILESTONES_CLASSIFYING_OUTPUT_H_
#define MILESTONES_CLASSIFYING_OUTPUT_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "milestones/classifying/answers.h"
#include "milestones/classifying/answers_file.h"
#include "milestones/classifying/deal.h"

namespace convlab {

// Of what the answers are; a run goes on with those of the same alone.
struct AnswersOf {
  std::string network;
  std::string weights;  // digests
  std::string images;
  std::string device;  // its model, on which the last bits depend
  int64_t count = 0;   // images
  int64_t block = 0;   // images of a piece
  // What a GPU computes of it at once, where a run goes on with what it finds.
  int64_t gpu_piece = 0;
  std::string values;  // "labels" or "logits"
};

struct OutputOptions {
  std::string path;  // empty: no file
  AnswersFormat format = AnswersFormat::kIdx;
  int classes = 0;
  bool logits = false;
  bool resume = false;
  AnswersOf of;
};

class Output {
 public:
  // Goes on with the answers of an earlier run if there are any and they may
  // be. InvalidArgument, naming what differs, if they are of something else, or
  // if nothing tells of what they are; nothing is changed then.
  static absl::StatusOr<std::unique_ptr<Output>> Open(
      const OutputOptions& options, Answers answers);

  // The images that were answered, by earlier runs too.
  int64_t done() const { return done_; }
  const Answers& answers() const { return answers_; }
  // AnswersOf::gpu_piece of these answers, those of earlier runs too.
  int64_t gpu_piece() const { return options_.of.gpu_piece; }

  // Adds a piece's answers, of the images behind those that are done.
  absl::Status Write(const Piece& piece);
  absl::Status Finish();

  // After a failure, or from another thread at an interrupt, after which
  // nothing more is written: keeps what --resume needs. Returns what there is
  // then, "" if there is nothing to say.
  std::string GiveUp();

 private:
  Output(const OutputOptions& options, Answers answers)
      : options_(options), answers_(std::move(answers)) {}
  // Logits that the file has for an image; 0: it has labels.
  int logits() const { return options_.logits ? options_.classes : 0; }
  std::string StatePath() const { return RunStatePath(options_.path); }
  absl::Status Restore();
  absl::Status CheckNoAnswers() const;
  absl::Status Save();
  // `bytes` of the answers' file are those of the images that are done.
  absl::Status SaveState(int64_t bytes) const;

  OutputOptions options_;
  std::mutex mutex_;
  bool given_up_ = false;
  Answers answers_;
  std::unique_ptr<AnswersFile> file_;  // null: none
  int64_t done_ = 0;
  // Whether the file has a piece that `answers_` and `done_` may not have.
  bool counting_ = false;
  std::chrono::steady_clock::time_point saved_;
};

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_OUTPUT_H_
