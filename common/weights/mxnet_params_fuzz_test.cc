// MXNet .params files, with each of the three array headers.

#include <cstdlib>
#include <set>

#include "common/weights/mxnet_params.h"
#include "common/weights/test_files.h"
#include "tools/fuzz/seeds.h"

namespace convlab {
namespace {

void Require(bool property) {
  if (!property) std::abort();
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const DataType type = DataType::kFloat32;
  std::vector<std::string> seeds;
  for (const MxnetHeader header :
       {MxnetHeader::kStorageType, MxnetHeader::kMagic, MxnetHeader::kOldest}) {
    seeds.push_back(MxnetFile(header, {}));
    seeds.push_back(MxnetFile(header, {{"a", type, {1}, {1}}}));
    seeds.push_back(MxnetFile(header, {{"arg:w", type, {2, 3}, Counting(6)},
                                       {"arg:b", type, {2}, {1, 2}}}));
  }
  return seeds;
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  const auto file = ParseMxnetParams(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!file.ok()) {
    Require(absl::IsInvalidArgument(file.status()));
    return 0;
  }
  std::set<std::string> names;
  size_t bytes = 0;
  for (const Tensor& tensor : file->tensors) {
    const auto count = ElementCount(tensor.shape);
    Require(count.ok() && *count == int64_t(tensor.values.size()));
    Require(names.insert(tensor.name).second);
    bytes += tensor.values.size() * sizeof(float) + tensor.name.size();
  }
  Require(bytes <= size);
  return 0;
}
