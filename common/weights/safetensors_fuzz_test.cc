// safetensors files. What was parsed is written and parsed again.

#include <cmath>
#include <cstdlib>
#include <set>

#include "common/weights/safetensors.h"
#include "common/weights/test_files.h"
#include "tools/fuzz/seeds.h"

namespace convlab {
namespace {

void Require(bool property) {
  if (!property) std::abort();
}

bool Same(float a, float b) {
  return a == b ? std::signbit(a) == std::signbit(b)
                : std::isnan(a) && std::isnan(b);
}

void RequireSame(const TensorFile& a, const TensorFile& b) {
  Require(a.metadata == b.metadata);
  Require(a.tensors.size() == b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    const Tensor& x = a.tensors[i];
    const Tensor& y = b.tensors[i];
    Require(x.name == y.name && x.type == y.type && x.shape == y.shape);
    Require(x.values.size() == y.values.size());
    for (size_t j = 0; j < x.values.size(); ++j) {
      Require(Same(x.values[j], y.values[j]));
    }
  }
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const DataType f32 = DataType::kFloat32, f16 = DataType::kFloat16;
  return {
      *SerializeSafetensors({}),
      *SerializeSafetensors({{{"a", f16, {3}, {1, 2, 3}}}, {}}),
      *SerializeSafetensors({{{"w", f32, {2, 3}, Counting(6)},
                              {"e", f32, {0}, {}},
                              {"b", f16, {2}, {0.5f, 1000}}},
                             {{"network", "fa19"}}}),
      SafetensorsFile("{\"__metadata__\":{\"\\u00fc\":\"\\n\"}}", ""),
      SafetensorsFile("{\"a\":[[[{\"b\":[1,-2.5e3,null,true]}]]]}", ""),
  };
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  absl::string_view content(reinterpret_cast<const char*>(data), size);
  const auto check = [](absl::string_view bytes) {
    const auto file = ParseSafetensors(bytes);
    if (!file.ok()) {
      Require(absl::IsInvalidArgument(file.status()));
      return;
    }
    for (const Tensor& tensor : file->tensors) {
      const auto count = ElementCount(tensor.shape);
      Require(count.ok() && *count == int64_t(tensor.values.size()));
    }
    const auto written = SerializeSafetensors(*file);
    Require(written.ok());
    const auto again = ParseSafetensors(*written);
    Require(again.ok());
    RequireSame(*file, *again);
  };
  check(content);
  // Runs again with the header's length corrected, since few mutations of the
  // header keep it right: the header ends at the last brace.
  if (size < 8) return 0;
  content.remove_prefix(8);
  const size_t end = content.rfind('}') + 1;
  check(SafetensorsFile(content.substr(0, end), content.substr(end)));
  return 0;
}
