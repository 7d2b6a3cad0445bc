// The images of one IDX file or of several as one sequence, of which there may
// be more than memory holds.
#ifndef COMMON_DATASET_IMAGE_FILES_H_
#define COMMON_DATASET_IMAGE_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dataset/idx.h"

namespace convlab {

class ImageFiles {
 public:
  // Opens the files `paths`, one at least, whose images follow each other in
  // this order. Errors of IdxImageStream::Open, and InvalidArgument if a plain
  // file is shorter or longer than its header says, or has images of another
  // size than the first.
  static absl::StatusOr<std::unique_ptr<ImageFiles>> Open(
      const std::vector<std::string>& paths);
  // The images of streams that are at their beginning.
  static absl::StatusOr<std::unique_ptr<ImageFiles>> Of(
      std::vector<std::unique_ptr<IdxImageStream>> files);

  int64_t count() const { return starts_.back(); }  // of all files
  int height() const { return files_[0]->height(); }
  int width() const { return files_[0]->width(); }
  // The first file's name, and how many follow it.
  std::string name() const;

  // Whether Read takes images in any order, by several threads at a time.
  // Otherwise it reads forward: what is skipped cannot be read any more.
  bool random_access() const { return random_access_; }
  // Fills `pixels` with `images` images from `first` on. Errors of
  // IdxImageStream::Read.
  absl::Status Read(int64_t first, int64_t images, uint8_t* pixels);

  // Of the files' contents, in their order (IdxImageStream::Digest).
  absl::StatusOr<std::string> Digest() const;

 private:
  explicit ImageFiles(std::vector<std::unique_ptr<IdxImageStream>> files);
  absl::Status Check() const;
  absl::Status ReadForward(IdxImageStream& file, int64_t first, int64_t images,
                           uint8_t* pixels);

  const std::vector<std::unique_ptr<IdxImageStream>> files_;
  std::vector<int64_t> starts_;  // each file's first image; the end
  bool random_access_ = true;    // of all of them
  int64_t next_ = 0;             // without it: the image to be read next
};

// The files that match the pattern (of *, ? and []), in the order of their
// names; a text without any of these is a file's name. NotFound if there are
// none.
absl::StatusOr<std::vector<std::string>> MatchingFiles(
    const std::string& pattern);

}  // namespace convlab

#endif  // COMMON_DATASET_IMAGE_FILES_H_
