// Files of weights built byte by byte, for tests.
#ifndef COMMON_WEIGHTS_TEST_FILES_H_
#define COMMON_WEIGHTS_TEST_FILES_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/weights/tensor_file.h"

namespace convlab {

// `value` as sizeof(T) bytes, little-endian.
template <typename T>
std::string Bytes(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i) {
    bytes.push_back(
        static_cast<char>(std::make_unsigned_t<T>(value) >> 8 * i & 0xff));
  }
  return bytes;
}

std::string FloatBytes(const std::vector<float>& values);

// `begin`, `begin` + 1, ...: small integers, which every type holds exactly.
std::vector<float> Counting(int64_t count, int begin = 0);

// An MXNet array's header, up to and with its shape.
enum class MxnetHeader { kStorageType, kMagic, kOldest };
std::string MxnetShape(MxnetHeader header, const std::vector<int64_t>& shape);

// A whole .params file.
std::string MxnetFile(MxnetHeader header, const std::vector<Tensor>& tensors);

// A whole mini-dnn file: the layer count, then each layer's length and numbers.
std::string MiniDnnFile(const std::vector<std::vector<float>>& layers);

// The ten layers of fa20, each with the numbers Counting() gives.
std::vector<std::vector<float>> Fa20Layers();

// A whole safetensors file with `header` and `data` as they are.
std::string SafetensorsFile(absl::string_view header, absl::string_view data);

}  // namespace convlab

#endif  // COMMON_WEIGHTS_TEST_FILES_H_
