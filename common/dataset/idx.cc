#include "common/dataset/idx.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/dataset/byte_stream.h"
#include "common/files/files.h"
#include "common/hash/hash.h"
#include "common/status/status.h"

namespace convlab {
namespace {

// Of Fashion-MNIST, as of MNIST.
constexpr int kClasses = 10;

// The magic number's third byte is the type (8: unsigned byte), its fourth the
// number of dimensions.
constexpr uint32_t kImagesMagic = 0x00000803;
constexpr uint32_t kLabelsMagic = 0x00000801;
constexpr int64_t kImagesHeader = 4 + 4 * 3;  // bytes

// Fashion-MNIST's 60,000 images are 0.4 GiB at 86 x 86. A gzip file of 1 MB may
// expand to this.
constexpr int64_t kMostBytes = int64_t{1} << 30;

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

// The file's dimensions, each at least 1 and less than 2^31.
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
  for (size_t i = 0; i < rank; ++i) {
    const int32_t value = static_cast<int32_t>(integer(header + 4 + 4 * i));
    if (value < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the header's ", kNames[i], " is ", value, ", expected at least 1"));
    }
    dimensions.push_back(value);
  }
  return dimensions;
}

// The product of the dimensions from `first` on; InvalidArgument if it is more
// than kMostBytes.
absl::StatusOr<int64_t> BytesOf(const std::vector<int64_t>& dimensions,
                                size_t first) {
  int64_t bytes = 1;
  for (size_t i = first; i < dimensions.size(); ++i) {
    // Cannot overflow: 2^30 * 2^31 < 2^63.
    bytes *= dimensions[i];
    if (bytes > kMostBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the header says ", absl::StrJoin(dimensions, " x "),
          " bytes, more than the ", kMostBytes, " that are accepted"));
    }
  }
  return bytes;
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

absl::Status WrongSize(const std::vector<int64_t>& dimensions, int64_t expected,
                       absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat("the header says ", absl::StrJoin(dimensions, " x "), " = ",
                   expected, " bytes behind it, the file holds ", found));
}

// Whether all that the header promises, and no more, was in the stream, of
// which `found` bytes behind the header were read. Reading to the end also
// makes zlib compare the check sum.
absl::Status CheckEnd(ByteStream& stream,
                      const std::vector<int64_t>& dimensions, int64_t expected,
                      int64_t found) {
  bool more = false;
  if (found == expected) {
    // One surplus piece is enough to refuse the file, whose end may be far.
    uint8_t surplus[1 << 12];
    ASSIGN_OR_RETURN(const size_t count, stream.Read(surplus, sizeof(surplus)));
    found += count;
    more = count == sizeof(surplus);
  }
  if (found == expected) return absl::OkStatus();
  return WrongSize(dimensions, expected, more ? "more" : absl::StrCat(found));
}

absl::StatusOr<Idx> ParseIdx(ByteSource& source, uint32_t expected_magic) {
  ASSIGN_OR_RETURN(const auto stream, ByteStream::Open(source));
  Idx idx;
  ASSIGN_OR_RETURN(idx.dimensions, ReadHeader(*stream, expected_magic));
  ASSIGN_OR_RETURN(const int64_t expected, BytesOf(idx.dimensions, 0));
  ASSIGN_OR_RETURN(idx.bytes, ReadBytes(*stream, expected));
  RETURN_IF_ERROR(
      CheckEnd(*stream, idx.dimensions, expected, idx.bytes.size()));
  return idx;
}

absl::StatusOr<ImageSet> ParseImages(ByteSource& source) {
  ASSIGN_OR_RETURN(Idx idx, ParseIdx(source, kImagesMagic));
  ImageSet images;
  images.count = idx.dimensions[0];
  images.height = static_cast<int>(idx.dimensions[1]);
  images.width = static_cast<int>(idx.dimensions[2]);
  images.pixels = std::move(idx.bytes);
  return images;
}

absl::StatusOr<std::vector<uint8_t>> ParseLabels(ByteSource& source) {
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
                          absl::StatusOr<T> (*parse)(ByteSource&)) {
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

absl::StatusOr<std::unique_ptr<IdxImageStream>> IdxImageStream::Open(
    const std::string& path) {
  const bool standard_input = path == "-";
  ASSIGN_OR_RETURN(FileReader file, standard_input ? FileReader::StandardInput()
                                                   : FileReader::Open(path));
  auto images = std::unique_ptr<IdxImageStream>(
      new IdxImageStream(standard_input ? "standard input" : path));
  images->source_ = std::make_unique<FileSource>(std::move(file));
  const absl::Status opened = images->ReadHeader();
  if (!opened.ok()) return Annotate(opened, images->name_);
  return images;
}

IdxImageStream::IdxImageStream(std::string name) : name_(std::move(name)) {}

IdxImageStream::~IdxImageStream() = default;

absl::Status IdxImageStream::ReadHeader() {
  ASSIGN_OR_RETURN(stream_, ByteStream::Open(*source_));
  ASSIGN_OR_RETURN(dimensions_, convlab::ReadHeader(*stream_, kImagesMagic));
  ASSIGN_OR_RETURN(pixels_, BytesOf(dimensions_, 1));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> IdxImageStream::Read(int64_t most, uint8_t* pixels) {
  const int64_t images = std::min(most, count() - taken_);
  const absl::StatusOr<size_t> bytes = stream_->Read(pixels, images * pixels_);
  if (!bytes.ok()) return Annotate(bytes.status(), name_);
  const int64_t found = static_cast<int64_t>(*bytes);
  if (found < images * pixels_) return EndsEarly(taken_ * pixels_ + found);
  taken_ += images;
  if (images > 0 && taken_ == count()) {
    const int64_t bytes_in_all = taken_ * pixels_;  // at most 2^31 * 2^30
    RETURN_IF_ERROR(Annotate(
        CheckEnd(*stream_, dimensions_, bytes_in_all, bytes_in_all), name_));
  }
  return images;
}

absl::Status IdxImageStream::EndsEarly(int64_t bytes) const {
  return absl::InvalidArgumentError(absl::StrCat(
      name_, ": the header says ", absl::StrJoin(dimensions_, " x "),
      ", the data end after ", bytes % pixels_, " of the ", pixels_,
      " bytes of image ", bytes / pixels_));
}

bool IdxImageStream::random_access() const {
  return source_->size() > 0 && !stream_->gzipped();
}

absl::Status IdxImageStream::ReadAt(int64_t first, int64_t images,
                                    uint8_t* pixels) const {
  ASSIGN_OR_RETURN(const size_t found,
                   source_->file().ReadAt(kImagesHeader + first * pixels_,
                                          pixels, images * pixels_));
  if (static_cast<int64_t>(found) == images * pixels_) return absl::OkStatus();
  return EndsEarly(first * pixels_ + static_cast<int64_t>(found));
}

absl::Status IdxImageStream::CheckSize() const {
  if (!random_access()) return absl::OkStatus();
  const int64_t expected = count() * pixels_;  // at most 2^31 * 2^30
  const int64_t found = source_->size() - kImagesHeader;
  if (found == expected) return absl::OkStatus();
  if (found < expected) return EndsEarly(found);
  return Annotate(WrongSize(dimensions_, expected, absl::StrCat(found)), name_);
}

absl::StatusOr<std::string> IdxImageStream::Digest() const {
  constexpr int64_t kPlaces = 256, kPlaceBytes = 4096;
  std::string text = absl::StrJoin(dimensions_, "x");
  if (!random_access()) return Sha256(text);
  absl::StrAppend(&text, " ", source_->size(), " ");
  std::string bytes(kPlaceBytes, '\0');
  const int64_t last = std::max<int64_t>(0, source_->size() - kPlaceBytes);
  for (int64_t i = 0; i < kPlaces; ++i) {
    const auto offset = static_cast<int64_t>(
        static_cast<double>(last) * static_cast<double>(i) / (kPlaces - 1));
    ASSIGN_OR_RETURN(
        const size_t found,
        source_->file().ReadAt(offset, bytes.data(), bytes.size()));
    text.append(bytes, 0, found);
    if (last == 0) break;
  }
  return Sha256(text);
}

absl::StatusOr<ImageSet> ReadIdxImages(const std::string& path) {
  return ReadIdx(path, &ParseImages);
}

absl::StatusOr<std::vector<uint8_t>> ReadIdxLabels(const std::string& path) {
  return ReadIdx(path, &ParseLabels);
}

}  // namespace convlab
