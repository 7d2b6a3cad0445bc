// MXNet's .params files, as mx.nd.save wrote them from version 0.11 to 1.3: the
// course's trained weights. Little-endian: u64 magic number 0x112, u64
// reserved, u64 array count, the arrays, u64 name count, the names.
// Source: MXNet's src/ndarray/ndarray.cc, NDArray::Load and its LegacyLoad.
#ifndef COMMON_WEIGHTS_MXNET_PARAMS_H_
#define COMMON_WEIGHTS_MXNET_PARAMS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/weights/tensor_file.h"

namespace convlab {

// The first eight bytes as a little-endian integer.
inline constexpr uint64_t kMxnetMagic = 0x112;

// Parses the bytes of a file into tensors with the file's names, such as
// "arg:new0_weight", in its order. Accepts the array headers of all those
// versions, with dense float32 arrays saved from any device. InvalidArgument
// otherwise, with the array's number.
absl::StatusOr<TensorFile> ParseMxnetParams(absl::string_view content);

}  // namespace convlab

#endif  // COMMON_WEIGHTS_MXNET_PARAMS_H_
