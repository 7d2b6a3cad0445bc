// What is told about the answers of a run: how many are right, which class was
// taken for which, and which images are doubtful.
#ifndef MILESTONES_CLASSIFYING_ANSWERS_H_
#define MILESTONES_CLASSIFYING_ANSWERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/compiled/compiled.h"

namespace convlab {

// What Answers knows after some images, to go on with in another run.
struct AnswersState {
  struct Doubt {
    int64_t index = 0;
    int label = 0, second = 0;
    uint32_t margin_bits = 0;  // of the float
    bool close = false;
  };
  int64_t count = 0, correct = 0, close_count = 0;
  std::vector<int64_t> counts;
  std::vector<Doubt> uncertain, close;
};

// Memory does not grow with the images, unless very many answers are close.
class Answers {
 public:
  // `labels` are those of all images; empty: unknown.
  Answers(int classes, std::vector<uint8_t> labels);

  // Counts the answer of image `index`.
  void Add(int64_t index, const Answer& answer);

  AnswersState Save() const;
  // Instead of adding the same images. InvalidArgument, naming the field, if
  // the state, which is read from a file, is none of such images.
  absl::Status Restore(const AnswersState& state);

  bool has_labels() const { return !labels_.empty(); }
  // Of the images so far; 0 without labels.
  int64_t correct() const { return correct_; }

  // The lines for standard output: with labels the share of correct answers,
  // the confusion matrix and the most uncertain images, otherwise how often
  // each class was found.
  std::vector<std::string> Text() const;

  // The images between whose two best classes float32 cannot decide, as lines;
  // empty if there are none.
  std::vector<std::string> CloseText() const;

 private:
  struct Doubt {
    int64_t index;
    Answer answer;
  };

  absl::Status Check(const AnswersState& state) const;
  std::string Describe(const Doubt& doubt) const;

  const int classes_;
  const std::vector<uint8_t> labels_;
  int64_t count_ = 0, correct_ = 0, close_count_ = 0;
  std::vector<int64_t> counts_;   // [true class or 0][class found]
  std::vector<Doubt> uncertain_;  // a heap, the most certain of them first
  std::vector<Doubt> close_;      // the first of them
};

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_ANSWERS_H_
