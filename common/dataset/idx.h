// IDX files, the format of MNIST and Fashion-MNIST: a magic number, one 32-bit
// integer per dimension, then unsigned bytes, row-major. Two variations are
// accepted:
//
//   - gzipped or plain, recognized by the content
//   - big-endian headers (the published files) or little-endian ones (the
//     course's resized files), recognized by the magic number
//
// Source of the format: the end of http://yann.lecun.com/exdb/mnist/.
#ifndef COMMON_DATASET_IDX_H_
#define COMMON_DATASET_IDX_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace convlab {

// Grey images of one size: count x height x width bytes, row-major.
struct ImageSet {
  int64_t count = 0;
  int height = 0;
  int width = 0;
  std::vector<uint8_t> pixels;
};

// Parses the images or labels in `content`, the bytes of a file.
// InvalidArgument says what the file holds and what was expected: damaged or
// truncated gzip, another magic number, a dimension below 1, more than 1 GiB in
// all, fewer or more bytes than the header says, a label outside 0 to 9. Memory
// grows with the bytes that the file holds, not with those that its header
// promises, and the content of a large file is held once.
absl::StatusOr<ImageSet> ParseIdxImages(absl::string_view content);
absl::StatusOr<std::vector<uint8_t>> ParseIdxLabels(absl::string_view content);

// Reads the same from the file `path`; errors name it.
absl::StatusOr<ImageSet> ReadIdxImages(const std::string& path);
absl::StatusOr<std::vector<uint8_t>> ReadIdxLabels(const std::string& path);

class ByteStream;
class FileSource;

// The images of an IDX file one after another, of which there may be more than
// memory holds.
class IdxImageStream {
 public:
  // Opens the file `path`, or standard input if that is "-", and reads the
  // header. Errors as of ReadIdxImages; only the size of one image is limited.
  static absl::StatusOr<std::unique_ptr<IdxImageStream>> Open(
      const std::string& path);
  ~IdxImageStream();

  // As the header says.
  int64_t count() const { return dimensions_[0]; }
  int height() const { return static_cast<int>(dimensions_[1]); }
  int width() const { return static_cast<int>(dimensions_[2]); }

  // Fills `pixels` with the next `most` images, or with as many as are left;
  // returns how many. InvalidArgument, naming the image, if the file ends
  // within them; with the last image, if it goes on behind it.
  absl::StatusOr<int64_t> Read(int64_t most, uint8_t* pixels);

  // Whether ReadAt may be called: in a plain file, neither gzipped nor a pipe.
  bool random_access() const;
  // Fills `pixels` with the images from `first` on; any thread may call. Errors
  // of Read if the file ends within them.
  absl::Status ReadAt(int64_t first, int64_t images, uint8_t* pixels) const;
  // The error that reading all of the file would find in its size; OK without
  // random access.
  absl::Status CheckSize() const;

  // The file's name, as in errors.
  const std::string& name() const { return name_; }
  // SHA-256 of the header and, with random access, of the file's size and of
  // its bytes at a number of places all over it: equal for equal files, and
  // very likely different for others, without reading all of a large one.
  absl::StatusOr<std::string> Digest() const;

 private:
  explicit IdxImageStream(std::string name);
  absl::Status ReadHeader();
  absl::Status EndsEarly(int64_t bytes) const;

  const std::string name_;  // for errors
  std::unique_ptr<FileSource> source_;
  std::unique_ptr<ByteStream> stream_;
  std::vector<int64_t> dimensions_;
  int64_t pixels_ = 0;  // of an image
  int64_t taken_ = 0;   // images
};

}  // namespace convlab

#endif  // COMMON_DATASET_IDX_H_
