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

// The tensors of `content`, a file's bytes, in the order of their data, and
// the strings under "__metadata__". Types F32 and F16. InvalidArgument where
// the file breaks a rule of the format or has another type; a header may be
// 1 MiB long.
absl::StatusOr<TensorFile> ParseSafetensors(absl::string_view content);

// The bytes of a file with the tensors in the order given. kFloat16 values are
// rounded to the nearest half, ties to even. InvalidArgument where a name is
// not UTF-8, is reserved or comes twice, where a shape and the number of values
// disagree, or where a finite value is beyond the largest half.
absl::StatusOr<std::string> SerializeSafetensors(const TensorFile& file);

}  // namespace convlab

#endif  // COMMON_WEIGHTS_SAFETENSORS_H_
