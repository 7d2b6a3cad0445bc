// safetensors, the format in which our own weights are stored: a 64-bit
// little-endian header length, a JSON header that gives each tensor's dtype,
// shape and place, then the tensors' bytes without gaps.
// Source: https://github.com/huggingface/safetensors, "Format".
#ifndef COMMON_WEIGHTS_SAFETENSORS_H_
#define COMMON_WEIGHTS_SAFETENSORS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/weights/tensor_file.h"

namespace convlab {

// Parses the bytes of a file: the tensors, of types F32 and F16, in the order
// of their data, and the strings under "__metadata__". InvalidArgument if the
// file violates the format, has another type, or has a header longer than 1
// MiB.
absl::StatusOr<TensorFile> ParseSafetensors(absl::string_view content);

// Returns the bytes of a file with the tensors in the given order. kFloat16
// values are rounded to the nearest half, ties to even. InvalidArgument if a
// name is not UTF-8, is reserved or occurs twice, if a shape and the number of
// values disagree, or if a finite value exceeds the largest half.
absl::StatusOr<std::string> SerializeSafetensors(const TensorFile& file);

}  // namespace convlab

#endif  // COMMON_WEIGHTS_SAFETENSORS_H_
