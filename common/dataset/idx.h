// IDX files, the format of MNIST and Fashion-MNIST: a magic number, one 32-bit
// integer per dimension, then unsigned bytes, row-major. Taken as they come:
//
//   - gzipped or plain, told by the content
//   - big-endian headers (the published files) or little-endian ones (the
//     course's resized files), told by the magic number
//
// Source of the format: http://yann.lecun.com/exdb/mnist/, at the page's end.
#ifndef COMMON_DATASET_IDX_H_
#define COMMON_DATASET_IDX_H_

#include <cstdint>
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

// The images or labels in `content`, a file's bytes. InvalidArgument says what
// the file holds and what was expected: damaged or truncated gzip, another
// magic number, dimensions below 1 or beyond 4 GiB together, fewer or more
// bytes than the header says, a label outside 0 to 9. Memory grows with the
// bytes that are there, not with those that the header promises, and large
// files are held once.
absl::StatusOr<ImageSet> ParseIdxImages(absl::string_view content);
absl::StatusOr<std::vector<uint8_t>> ParseIdxLabels(absl::string_view content);

// The same for the file `path`, which the error names.
absl::StatusOr<ImageSet> ReadIdxImages(const std::string& path);
absl::StatusOr<std::vector<uint8_t>> ReadIdxLabels(const std::string& path);

}  // namespace convlab

#endif  // COMMON_DATASET_IDX_H_
