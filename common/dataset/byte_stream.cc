#include "common/dataset/byte_stream.h"

#include "absl/strings/str_cat.h"
#include "common/status/status.h"

namespace convlab {
namespace {

constexpr int64_t kPiece = 1 << 16;

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStream>> ByteStream::Open(
    ByteSource& source) {
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

ByteStream::~ByteStream() {
  if (gzipped_) inflateEnd(&zlib_);
}

absl::StatusOr<size_t> ByteStream::Read(uint8_t* out, size_t size) {
  if (gzipped_) return Inflate(out, size);
  const size_t ready = std::min(size, piece_size_);
  std::copy_n(zlib_.next_in, ready, out);
  zlib_.next_in += ready;
  piece_size_ -= ready;
  if (ready == size) return size;
  ASSIGN_OR_RETURN(const size_t count, source_.Read(out + ready, size - ready));
  return ready + count;
}

int64_t ByteStream::MostBytes() const {
  // Deflate's densest code takes one bit for a length of 258 bytes and one
  // for their distance.
  constexpr int64_t kDensest = 1032;
  return gzipped_ ? source_.size() * kDensest : source_.size();
}

ByteStream::ByteStream(ByteSource& source)
    : source_(source),
      capacity_(source.size() > 0 ? std::min<int64_t>(source.size(), kPiece)
                                  : kPiece),
      piece_(new uint8_t[capacity_]) {}

absl::Status ByteStream::ReadPiece() {
  ASSIGN_OR_RETURN(piece_size_, source_.Read(piece_.get(), capacity_));
  zlib_.next_in = piece_.get();
  zlib_.avail_in = static_cast<uInt>(piece_size_);
  taken_ += piece_size_;
  return absl::OkStatus();
}

absl::StatusOr<size_t> ByteStream::Inflate(uint8_t* out, size_t size) {
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

}  // namespace convlab
