// The bytes of a file that may be gzipped, in order.
#ifndef COMMON_DATASET_BYTE_STREAM_H_
#define COMMON_DATASET_BYTE_STREAM_H_

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/files/files.h"

namespace convlab {

// Reads the bytes of a file in order, from memory or from disk.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `out` with the next `size` bytes, or with fewer where the file ends;
  // returns how many.
  virtual absl::StatusOr<size_t> Read(uint8_t* out, size_t size) = 0;
  // The size of the file in bytes; 0 if it is not known.
  virtual int64_t size() const = 0;
};

class StringSource : public ByteSource {
 public:
  explicit StringSource(absl::string_view content)
      : size_(content.size()), rest_(content) {}
  absl::StatusOr<size_t> Read(uint8_t* out, size_t size) override {
    const size_t count = std::min(size, rest_.size());
    std::copy_n(rest_.data(), count, out);
    rest_.remove_prefix(count);
    return count;
  }
  int64_t size() const override { return size_; }

 private:
  const int64_t size_;
  absl::string_view rest_;
};

class FileSource : public ByteSource {
 public:
  explicit FileSource(FileReader file) : file_(std::move(file)) {}
  absl::StatusOr<size_t> Read(uint8_t* out, size_t size) override {
    return file_.Read(out, size);
  }
  int64_t size() const override { return file_.size(); }
  const FileReader& file() const { return file_; }

 private:
  FileReader file_;
};

// Reads the decompressed bytes of a gzip file in order, or the bytes of a plain
// file; which of them it is, its first bytes tell. Errors: InvalidArgument for
// damaged or truncated gzip, and those of the source.
class ByteStream {
 public:
  // `source` must outlive the stream.
  static absl::StatusOr<std::unique_ptr<ByteStream>> Open(ByteSource& source);
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  ~ByteStream();

  // Fills `out` with the next `size` bytes, or with fewer where the file ends;
  // returns how many.
  absl::StatusOr<size_t> Read(uint8_t* out, size_t size);

  bool gzipped() const { return gzipped_; }

  // An upper bound on the size of the whole stream; 0 if there is none.
  int64_t MostBytes() const;

 private:
  explicit ByteStream(ByteSource& source);
  absl::Status ReadPiece();
  absl::StatusOr<size_t> Inflate(uint8_t* out, size_t size);

  ByteSource& source_;
  const int64_t capacity_;
  // The piece that was read last; zlib_.next_in points to its first unused
  // byte, for plain files too.
  const std::unique_ptr<uint8_t[]> piece_;
  size_t piece_size_ = 0;  // of a plain file: what is left of the piece
  int64_t taken_ = 0;      // bytes read from the source
  bool gzipped_ = false;
  bool ended_ = false;  // the end of a gzip member was reached
  z_stream zlib_ = {};
};

}  // namespace convlab

#endif  // COMMON_DATASET_BYTE_STREAM_H_
