// Reads little-endian binary files front to back, with every length checked
// before it is used. Errors are InvalidArgument and say what was expected at
// which byte, its size, and how many bytes are left.
#ifndef COMMON_WEIGHTS_BYTE_READER_H_
#define COMMON_WEIGHTS_BYTE_READER_H_

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status/status.h"

namespace convlab {

class ByteReader {
 public:
  // `content` must outlive the reader and the results of Bytes().
  explicit ByteReader(absl::string_view content) : content_(content) {}

  // The number of bytes that were read, and that are left.
  size_t offset() const { return offset_; }
  size_t left() const { return content_.size() - offset_; }

  absl::StatusOr<absl::string_view> Bytes(uint64_t size,
                                          absl::string_view what) {
    if (size > left()) return TooShort(size, "bytes", what);
    const absl::string_view bytes = content_.substr(offset_, size);
    offset_ += size;
    return bytes;
  }

  template <typename T>
  absl::StatusOr<T> Integer(absl::string_view what) {
    ASSIGN_OR_RETURN(const absl::string_view bytes, Bytes(sizeof(T), what));
    std::make_unsigned_t<T> value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= std::make_unsigned_t<T>{static_cast<uint8_t>(bytes[i])} << 8 * i;
    }
    return static_cast<T>(value);
  }

  absl::StatusOr<std::vector<float>> Floats(uint64_t count,
                                            absl::string_view what) {
    // Rejects impossible counts, so that the product below does not overflow.
    if (count > left()) return TooShort(count, "floats", what);
    ASSIGN_OR_RETURN(const absl::string_view bytes,
                     Bytes(count * sizeof(float), what));
    std::vector<float> values(count);
    // Every host that CUDA runs on is little-endian.
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  // Checks that nothing is left.
  absl::Status ExpectEnd() const {
    if (left() == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("expected the file to end at byte ", offset_, ", found ",
                     left(), " bytes more"));
  }

 private:
  absl::Status TooShort(uint64_t count, absl::string_view units,
                        absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "the file ends too early: ", what, " at byte ", offset_, ": ", count,
        " ", units, " expected, ", left(), " bytes left"));
  }

  absl::string_view content_;
  size_t offset_ = 0;
};

}  // namespace convlab

#endif  // COMMON_WEIGHTS_BYTE_READER_H_
