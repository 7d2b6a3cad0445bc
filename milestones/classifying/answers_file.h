// The file of answers: a label for each image, or the logits of all classes.
#ifndef MILESTONES_CLASSIFYING_ANSWERS_FILE_H_
#define MILESTONES_CLASSIFYING_ANSWERS_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/files/files.h"

namespace convlab {

// kIdx: labels as bytes, as in MNIST's files; logits as big-endian float32,
//       type 0x0D, in two dimensions.
// kCsv: one line per image: the label, or the logits with commas between, in as
//       many digits as float32 needs.
// kNpy: NumPy's format 1.0: uint8 [count] or float32 [count, classes].
enum class AnswersFormat { kIdx, kCsv, kNpy };

// By the end of the file's name. InvalidArgument for any other.
absl::StatusOr<AnswersFormat> FormatOf(absl::string_view path);

// Written piece by piece; the file appears under its name when it is complete
// (AtomicFile).
class AnswersFile {
 public:
  // Of `count` images, fewer than 2^31. `classes` is 0 for labels.
  static absl::StatusOr<std::unique_ptr<AnswersFile>> Create(
      const std::string& path, AnswersFormat format, int64_t count,
      int classes);

  // Of the next images: one label each.
  absl::Status WriteLabels(absl::Span<const uint8_t> labels);
  // `classes` logits each.
  absl::Status WriteLogits(absl::Span<const float> logits);
  absl::Status Commit() { return file_.Commit(); }

  const std::string& temporary_path() const { return file_.temporary_path(); }

 private:
  AnswersFile(AtomicFile file, AnswersFormat format, int classes)
      : file_(std::move(file)), format_(format), classes_(classes) {}

  AtomicFile file_;
  const AnswersFormat format_;
  const int classes_;
  std::string text_;  // of a piece
};

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_ANSWERS_FILE_H_
