#include "common/dataset/idx.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/files/files.h"
#include "common/status/status.h"

namespace convlab {
namespace {

// Of Fashion-MNIST, as of MNIST.
constexpr int kClasses = 10;

// The magic number's third byte is the type (8: unsigned byte), its fourth the
// number of dimensions.
constexpr uint32_t kImagesMagic = 0x00000803;
constexpr uint32_t kLabelsMagic = 0x00000801;

// Fashion-MNIST's 60,000 images are 0.4 GiB at 86 x 86.
constexpr int64_t kMostBytes = int64_t{1} << 32;

// Reads the bytes of a file in order, from memory or from disk.
class Source {
 public:
  virtual ~Source() = default;
  // Fills `out` with the next `size` bytes, or with fewer where the file ends;
  // returns how many.
  virtual absl::StatusOr<size_t> Read(uint8_t* out, size_t size) = 0;
  // The size of the file in bytes; 0 if it is not known.
  virtual int64_t size() const = 0;
};

class StringSource : public Source {
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

class FileSource : public Source {
 public:
  explicit FileSource(FileReader file) : file_(std::move(file)) {}
  absl::StatusOr<size_t> Read(uint8_t* out, size_t size) override {
    return file_.Read(out, size);
  }
  int64_t size() const override { return file_.size(); }

 private:
  FileReader file_;
};

// Reads the decompressed bytes of a gzip file in order, or the bytes of a plain
// file.
class ByteStream {
 public:
  static absl::StatusOr<std::unique_ptr<ByteStream>> Open(Source& source) {
    auto stream = std::unique_ptr<ByteStream>(new ByteStream(source));
    RETURN_IF_ERROR(stream->ReadPiece());
    const uint8_t* const piece = stream->piece_.get();
    stream->gzipped_ =
        stream->piece_size_ >= 2 && piece[0] == 0x1f && piece[1] == 0x8b;
    constexpr int kGzip = 16;  // expect gzip's header and check sum
    if (stream->gzipped_ &&
        inflateInit2(&stream->zlib_, MAX_WBITS + kGzip) != Z_OK) {
      return absl::ResourceExhaustedError("zlib could not be initialized");
    }
    return stream;
  }
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  ~ByteStream() {
    if (gzipped_) inflateEnd(&zlib_);
  }

  // Fills `out` with the next `size` bytes, or with fewer where the file ends;
  // returns how many.
  absl::StatusOr<size_t> Read(uint8_t* out, size_t size) {
    if (gzipped_) return Inflate(out, size);
    const size_t ready = std::min(size, piece_size_);
    std::copy_n(zlib_.next_in, ready, out);
    zlib_.next_in += ready;
    piece_size_ -= ready;
    if (ready == size) return size;
    ASSIGN_OR_RETURN(const size_t count,
                     source_.Read(out + ready, size - ready));
    return ready + count;
  }

  // An upper bound on the size of the whole stream; 0 if there is none.
  int64_t MostBytes() const {
    // Deflate's densest code takes one bit for a length of 258 bytes and one
    // for their distance.
    constexpr int64_t kDensest = 1032;
    return gzipped_ ? source_.size() * kDensest : source_.size();
  }

 private:
  explicit ByteStream(Source& source)
      : source_(source),
        capacity_(source.size() > 0 ? std::min<int64_t>(source.size(), kPiece)
                                    : kPiece),
        piece_(new uint8_t[capacity_]) {}

  absl::Status ReadPiece() {
    ASSIGN_OR_RETURN(piece_size_, source_.Read(piece_.get(), capacity_));
    zlib_.next_in = piece_.get();
    zlib_.avail_in = static_cast<uInt>(piece_size_);
    taken_ += piece_size_;
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Inflate(uint8_t* out, size_t size) {
    size_t count = 0;
    while (count < size) {
      if (zlib_.avail_in == 0) RETURN_IF_ERROR(ReadPiece());
      if (ended_) {
        if (zlib_.avail_in == 0) break;
        // A gzip file may hold several members, one after another.
        inflateReset(&zlib_);
        ended_ = false;
      }
      // zlib counts in 32 bits.
      const size_t step = std::min(size - count, size_t{1} << 30);
      zlib_.next_out = out + count;
      zlib_.avail_out = static_cast<uInt>(step);
      const int result = inflate(&zlib_, Z_NO_FLUSH);
      count += step - zlib_.avail_out;
      if (result == Z_STREAM_END) {
        ended_ = true;
      } else if (result == Z_BUF_ERROR) {
        return absl::InvalidArgumentError(
            absl::StrCat("truncated gzip: the file's ", taken_,
                         " bytes end within the compressed data"));
      } else if (result == Z_MEM_ERROR) {
        return absl::ResourceExhaustedError("zlib ran out of memory");
      } else if (result != Z_OK) {
        return absl::InvalidArgumentError(
            absl::StrCat("damaged gzip at byte ", taken_ - zlib_.avail_in, ": ",
                         zlib_.msg != nullptr ? zlib_.msg : zError(result)));
      }
    }
    return count;
  }

  static constexpr int64_t kPiece = 1 << 16;

  Source& source_;
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

uint32_t BigEndian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 |
         uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

uint32_t LittleEndian(const uint8_t* bytes) {
  return uint32_t{bytes[3]} << 24 | uint32_t{bytes[2]} << 16 |
         uint32_t{bytes[1]} << 8 | uint32_t{bytes[0]};
}

std::string MagicName(uint32_t magic) {
  return absl::StrFormat("0x%08x%s", magic,
                         magic == kImagesMagic   ? " (images)"
                         : magic == kLabelsMagic ? " (labels)"
                                                 : "");
}

struct Idx {
  std::vector<int64_t> dimensions;
  std::vector<uint8_t> bytes;
};

// The file's dimensions, each at least 1 and their product at most kMostBytes.
absl::StatusOr<std::vector<int64_t>> ReadHeader(ByteStream& stream,
                                                uint32_t expected_magic) {
  const size_t rank = expected_magic & 0xff;
  uint8_t header[4 + 4 * 3];
  const size_t header_size = 4 + 4 * rank;
  ASSIGN_OR_RETURN(const size_t count, stream.Read(header, header_size));
  if (count < header_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file ends after ", count,
                     " bytes, within the IDX header of ", header_size));
  }
  const bool little = LittleEndian(header) == kImagesMagic ||
                      LittleEndian(header) == kLabelsMagic;
  const auto integer = little ? LittleEndian : BigEndian;
  if (integer(header) != expected_magic) {
    return absl::InvalidArgumentError(
        absl::StrCat("magic number ", MagicName(integer(header)), ", expected ",
                     MagicName(expected_magic)));
  }
  constexpr const char* kNames[] = {"count", "height", "width"};
  std::vector<int64_t> dimensions;
  int64_t bytes = 1;
  for (size_t i = 0; i < rank; ++i) {
    const int32_t value = static_cast<int32_t>(integer(header + 4 + 4 * i));
    if (value < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the header's ", kNames[i], " is ", value, ", expected at least 1"));
    }
    dimensions.push_back(value);
    // Cannot overflow: 2^32 * 2^31 < 2^63.
    if (bytes <= kMostBytes) bytes *= value;
  }
  if (bytes > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the header says ", absl::StrJoin(dimensions, " x "),
        " bytes, more than the ", kMostBytes, " that are accepted"));
  }
  return dimensions;
}

// Reads `expected` bytes. The header that promises them may lie, so memory is
// allocated as bytes arrive. Where an upper bound of their number is known,
// memory is reserved once, because growing a buffer holds its content twice.
absl::StatusOr<std::vector<uint8_t>> ReadBytes(ByteStream& stream,
                                               int64_t expected) {
  // The size from which on the copy matters.
  constexpr int64_t kLarge = 1 << 20;
  std::vector<uint8_t> bytes;
  int64_t found = 0;
  while (found < expected) {
    if (found >= kLarge) {
      bytes.reserve(std::min(expected, std::max(found, stream.MostBytes())));
    }
    // The system commits reserved pages only when they are written.
    const int64_t step = std::clamp<int64_t>(found, 1 << 16, kLarge);
    const int64_t room = std::min(expected, found + step);
    bytes.resize(room);
    ASSIGN_OR_RETURN(const size_t count,
                     stream.Read(bytes.data() + found, room - found));
    found += count;
    if (found < room) break;
  }
  bytes.resize(found);
  return bytes;
}

absl::StatusOr<Idx> ParseIdx(Source& source, uint32_t expected_magic) {
  ASSIGN_OR_RETURN(const auto stream, ByteStream::Open(source));
  Idx idx;
  ASSIGN_OR_RETURN(idx.dimensions, ReadHeader(*stream, expected_magic));
  int64_t expected = 1;
  for (const int64_t dimension : idx.dimensions) expected *= dimension;
  ASSIGN_OR_RETURN(idx.bytes, ReadBytes(*stream, expected));

  int64_t found = idx.bytes.size();
  bool more = false;
  if (found == expected) {
    // Reading to the end also makes zlib compare the check sum. One surplus
    // piece is enough to refuse the file, whose end may be far.
    uint8_t surplus[1 << 12];
    ASSIGN_OR_RETURN(const size_t count,
                     stream->Read(surplus, sizeof(surplus)));
    found += count;
    more = count == sizeof(surplus);
  }
  if (found != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header says ", absl::StrJoin(idx.dimensions, " x "),
                     " = ", expected, " bytes behind it, the file holds ",
                     more ? "more" : absl::StrCat(found)));
  }
  return idx;
}

absl::StatusOr<ImageSet> ParseImages(Source& source) {
  ASSIGN_OR_RETURN(Idx idx, ParseIdx(source, kImagesMagic));
  ImageSet images;
  images.count = idx.dimensions[0];
  images.height = static_cast<int>(idx.dimensions[1]);
  images.width = static_cast<int>(idx.dimensions[2]);
  images.pixels = std::move(idx.bytes);
  return images;
}

absl::StatusOr<std::vector<uint8_t>> ParseLabels(Source& source) {
  ASSIGN_OR_RETURN(Idx idx, ParseIdx(source, kLabelsMagic));
  for (size_t i = 0; i < idx.bytes.size(); ++i) {
    if (idx.bytes[i] >= kClasses) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", idx.bytes[i], " at index ", i,
                       ", expected 0 to ", kClasses - 1));
    }
  }
  return std::move(idx.bytes);
}

// Parses the file `path`; errors name it.
template <typename T>
absl::StatusOr<T> ReadIdx(const std::string& path,
                          absl::StatusOr<T> (*parse)(Source&)) {
  ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
  FileSource source(std::move(file));
  absl::StatusOr<T> result = parse(source);
  RETURN_IF_ERROR(Annotate(result.status(), path));
  return result;
}

}  // namespace

absl::StatusOr<ImageSet> ParseIdxImages(absl::string_view content) {
  StringSource source(content);
  return ParseImages(source);
}

absl::StatusOr<std::vector<uint8_t>> ParseIdxLabels(absl::string_view content) {
  StringSource source(content);
  return ParseLabels(source);
}

absl::StatusOr<ImageSet> ReadIdxImages(const std::string& path) {
  return ReadIdx(path, &ParseImages);
}

absl::StatusOr<std::vector<uint8_t>> ReadIdxLabels(const std::string& path) {
  return ReadIdx(path, &ParseLabels);
}

}  // namespace convlab
