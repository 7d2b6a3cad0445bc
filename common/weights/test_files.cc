#include "common/weights/test_files.h"

#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace convlab {

std::string FloatBytes(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    bytes += Bytes(bits);
  }
  return bytes;
}

std::vector<float> Counting(int64_t count, int begin) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), static_cast<float>(begin));
  return values;
}

std::string MxnetShape(MxnetHeader header, const std::vector<int64_t>& shape) {
  const uint32_t rank = static_cast<uint32_t>(shape.size());
  std::string bytes;
  if (header == MxnetHeader::kStorageType) {
    bytes = Bytes(uint32_t{0xF993FAC9}) + Bytes(int32_t{0}) + Bytes(rank);
  } else if (header == MxnetHeader::kMagic) {
    bytes = Bytes(uint32_t{0xF993FAC8}) + Bytes(rank);
  } else {
    bytes = Bytes(rank);
  }
  for (const int64_t dimension : shape) {
    bytes += header == MxnetHeader::kOldest
                 ? Bytes(static_cast<uint32_t>(dimension))
                 : Bytes(dimension);
  }
  return bytes;
}

std::string MxnetFile(MxnetHeader header, const std::vector<Tensor>& tensors) {
  const uint64_t count = tensors.size();
  std::string file = Bytes(uint64_t{0x112}) + Bytes(uint64_t{0}) + Bytes(count);
  for (const Tensor& tensor : tensors) {
    constexpr int32_t kGpu = 2, kDevice = 3, kFloat32 = 0;
    absl::StrAppend(&file, MxnetShape(header, tensor.shape), Bytes(kGpu),
                    Bytes(kDevice), Bytes(kFloat32), FloatBytes(tensor.values));
  }
  file += Bytes(count);
  for (const Tensor& tensor : tensors) {
    file += Bytes(uint64_t{tensor.name.size()}) + tensor.name;
  }
  return file;
}

std::string MiniDnnFile(const std::vector<std::vector<float>>& layers) {
  std::string file = Bytes(static_cast<int32_t>(layers.size()));
  for (const std::vector<float>& layer : layers) {
    file += Bytes(static_cast<int32_t>(layer.size())) + FloatBytes(layer);
  }
  return file;
}

std::vector<std::vector<float>> Fa20Layers() {
  return {Counting(200), {}, {}, Counting(3152), {}, {}, Counting(41504), {},
          Counting(330), {}};
}

std::string SafetensorsFile(absl::string_view header, absl::string_view data) {
  return absl::StrCat(Bytes(uint64_t{header.size()}), header, data);
}

}  // namespace convlab
