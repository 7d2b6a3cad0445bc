// mini-dnn .bin files. A whole one is larger than the driver's inputs, so the
// target follows each input with the rest of a good file as well.

#include <cstdlib>

#include "common/weights/mini_dnn.h"
#include "common/weights/test_files.h"
#include "tools/fuzz/seeds.h"

namespace convlab {
namespace {

void Require(bool property) {
  if (!property) std::abort();
}

void Check(const std::string& content) {
  const auto file = ParseMiniDnn(content, **FindNetwork("fa20"));
  if (!file.ok()) {
    Require(absl::IsInvalidArgument(file.status()));
    return;
  }
  Require(file->tensors.size() == 6);
  for (const Tensor& tensor : file->tensors) {
    const auto count = ElementCount(tensor.shape);
    Require(count.ok() && *count == int64_t(tensor.values.size()));
  }
}

const std::string& GoodFile() {
  static const auto* const file = new std::string(MiniDnnFile(Fa20Layers()));
  return *file;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  // Ends of layers and of their lengths: 808 bytes hold the first layer.
  std::vector<std::string> seeds;
  for (const size_t size : {0, 4, 8, 808, 812, 816, 820, 900}) {
    seeds.push_back(GoodFile().substr(0, size));
  }
  return seeds;
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  const std::string content(data, data + size);
  Check(content);
  if (size < GoodFile().size()) Check(content + GoodFile().substr(size));
  return 0;
}
