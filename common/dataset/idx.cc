#include "common/dataset/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/files/files.h"
#include "common/network/network.h"
#include "common/status/status.h"

namespace convlab {
namespace {

// The magic number's third byte is the type (8: unsigned byte), its fourth the
// number of dimensions.
constexpr uint32_t kImagesMagic = 0x00000803;
constexpr uint32_t kLabelsMagic = 0x00000801;

// Fashion-MNIST's 60,000 images are 0.4 GiB at 86 x 86.
constexpr int64_t kMostBytes = int64_t{1} << 32;

// The decompressed bytes of a file, front to back; a plain file's own bytes.
class ByteStream {
 public:
  explicit ByteStream(absl::string_view content)
      : size_(content.size()), rest_(content) {
    gzipped_ =
        content.size() >= 2 && content[0] == '\x1f' && content[1] == '\x8b';
    constexpr int kGzip = 16;  // expect gzip's header and check sum
    if (gzipped_) opened_ = inflateInit2(&stream_, MAX_WBITS + kGzip);
  }
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  ~ByteStream() {
    if (gzipped_ && opened_ == Z_OK) inflateEnd(&stream_);
  }

  // Fills `out` with the next `size` bytes, or with fewer where the file ends;
  // returns how many.
  absl::StatusOr<size_t> Read(uint8_t* out, size_t size) {
    if (gzipped_) return Inflate(out, size);
    const size_t count = std::min(size, rest_.size());
    std::copy_n(rest_.data(), count, out);
    rest_.remove_prefix(count);
    return count;
  }

 private:
  // zlib counts in 32 bits.
  static constexpr size_t kLargestStep = size_t{1} << 30;

  absl::StatusOr<size_t> Inflate(uint8_t* out, size_t size) {
    if (opened_ != Z_OK) return absl::InternalError("zlib did not start");
    size_t count = 0;
    while (count < size) {
      if (stream_.avail_in == 0) {
        const size_t step = std::min(rest_.size(), kLargestStep);
        stream_.next_in =
            reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
        stream_.avail_in = static_cast<uInt>(step);
        rest_.remove_prefix(step);
      }
      if (ended_) {
        if (stream_.avail_in == 0) break;
        // A gzip file may hold several members, one behind the other.
        inflateReset(&stream_);
        ended_ = false;
      }
      const size_t step = std::min(size - count, kLargestStep);
      stream_.next_out = out + count;
      stream_.avail_out = static_cast<uInt>(step);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      count += step - stream_.avail_out;
      if (result == Z_STREAM_END) {
        ended_ = true;
      } else if (result == Z_BUF_ERROR) {
        return absl::InvalidArgumentError(
            absl::StrCat("truncated gzip: the file's ", size_,
                         " bytes end within the compressed data"));
      } else if (result != Z_OK) {
        return absl::InvalidArgumentError(absl::StrCat(
            "damaged gzip at byte ", size_ - rest_.size() - stream_.avail_in,
            " of ", size_, ": ",
            stream_.msg != nullptr ? stream_.msg : zError(result)));
      }
    }
    return count;
  }

  size_t size_;
  absl::string_view rest_;  // not yet read, or not yet given to zlib
  bool gzipped_ = false;
  bool ended_ = false;  // zlib has met the end of a gzip member
  int opened_ = Z_OK;
  z_stream stream_ = {};
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

absl::StatusOr<Idx> ParseIdx(absl::string_view content,
                             uint32_t expected_magic) {
  ByteStream stream(content);
  Idx idx;
  ASSIGN_OR_RETURN(idx.dimensions, ReadHeader(stream, expected_magic));
  int64_t expected = 1;
  for (const int64_t dimension : idx.dimensions) expected *= dimension;

  // The header may lie, so the buffer grows as bytes come.
  int64_t found = 0;
  while (found < expected) {
    const int64_t room =
        std::min(expected, std::max<int64_t>(2 * found, 1 << 16));
    idx.bytes.resize(room);
    ASSIGN_OR_RETURN(const size_t count,
                     stream.Read(idx.bytes.data() + found, room - found));
    found += count;
    if (found < room) break;
  }
  // Reading to the end also makes zlib compare the check sum.
  while (found >= expected) {
    uint8_t surplus[1 << 12];
    ASSIGN_OR_RETURN(const size_t count, stream.Read(surplus, sizeof(surplus)));
    if (count == 0) break;
    found += count;
  }
  if (found != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the header says ", absl::StrJoin(idx.dimensions, " x "), " = ",
        expected, " bytes behind it, the file holds ", found));
  }
  return idx;
}

}  // namespace

absl::StatusOr<ImageSet> ParseIdxImages(absl::string_view content) {
  ASSIGN_OR_RETURN(Idx idx, ParseIdx(content, kImagesMagic));
  ImageSet images;
  images.count = idx.dimensions[0];
  images.height = static_cast<int>(idx.dimensions[1]);
  images.width = static_cast<int>(idx.dimensions[2]);
  images.pixels = std::move(idx.bytes);
  return images;
}

absl::StatusOr<std::vector<uint8_t>> ParseIdxLabels(absl::string_view content) {
  ASSIGN_OR_RETURN(Idx idx, ParseIdx(content, kLabelsMagic));
  for (size_t i = 0; i < idx.bytes.size(); ++i) {
    if (idx.bytes[i] >= kClasses) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", idx.bytes[i], " at index ", i,
                       ", expected 0 to ", kClasses - 1));
    }
  }
  return std::move(idx.bytes);
}

absl::StatusOr<ImageSet> ReadIdxImages(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  absl::StatusOr<ImageSet> images = ParseIdxImages(content);
  RETURN_IF_ERROR(Annotate(images.status(), path));
  return images;
}

absl::StatusOr<std::vector<uint8_t>> ReadIdxLabels(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  absl::StatusOr<std::vector<uint8_t>> labels = ParseIdxLabels(content);
  RETURN_IF_ERROR(Annotate(labels.status(), path));
  return labels;
}

}  // namespace convlab
