// The file of answers: a label for each image, or the logits of all classes.
#ifndef MILESTONES_CLASSIFYING_ANSWERS_FILE_H_
#define MILESTONES_CLASSIFYING_ANSWERS_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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

// The file beside answers that grow which says of what they are (Output).
std::string RunStatePath(const std::string& answers);

// Written piece by piece. The file appears under its name when it is complete
// (AtomicFile), or grows under it, to be gone on with after a failure.
class AnswersFile {
 public:
  // Of `count` images, for IDX fewer than 2^31. `classes` is 0 for labels.
  static absl::StatusOr<std::unique_ptr<AnswersFile>> Create(
      const std::string& path, AnswersFormat format, int64_t count,
      int classes);
  // One that grows: from nothing if `bytes` is 0, otherwise behind its first
  // `bytes`, of an earlier run; what follows them is cut off. InvalidArgument
  // if it has fewer.
  static absl::StatusOr<std::unique_ptr<AnswersFile>> Grow(
      const std::string& path, AnswersFormat format, int classes,
      int64_t bytes);

  // Of the next images: one label each.
  absl::Status WriteLabels(absl::Span<const uint8_t> labels);
  // `classes` logits each.
  absl::Status WriteLogits(absl::Span<const float> logits);
  // Of one that does not grow.
  absl::Status Commit();
  // Of one that grows: brings what was written to the disk as a whole file of
  // the first `count` images. Returns its bytes.
  absl::StatusOr<int64_t> Save(int64_t count);

 private:
  AnswersFile(const std::string& path, AnswersFormat format, int classes)
      : path_(path), format_(format), classes_(classes) {}
  absl::Status Open(int64_t bytes);
  absl::Status Write(absl::string_view text);

  const std::string path_;
  const AnswersFormat format_;
  const int classes_;
  std::optional<AtomicFile> atomic_;
  FilePointer growing_;
  int64_t written_ = 0;  // bytes of it, without what a write left halfway
  std::string text_;     // of a piece
};

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_ANSWERS_FILE_H_
