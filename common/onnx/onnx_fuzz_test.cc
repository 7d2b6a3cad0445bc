// ONNX files: what is read is a network with all its weights, or an error.
#include <cstdlib>

#include "absl/status/status.h"
#include "common/onnx/onnx.h"
#include "common/onnx/test_models.h"
#include "tools/fuzz/seeds.h"

namespace convlab {
namespace {

void Require(bool property) {
  if (!property) std::abort();
}

Network Tiny() {
  return {"tiny",
          {},
          1,
          6,
          {ConvolutionLayer{2, 3, true}, Activation::kRelu,
           MaxPool{2, 2, false}, FullyConnectedLayer{3, true},
           Activation::kTanh, FullyConnectedLayer{2, false}}};
}

// A Reshape whose shape is computed, and channels last.
std::string Computed() {
  OnnxModel model({5, 5, 1});
  model.Floats("w", {2, 1, 3, 3}, std::vector<float>(18, 1));
  model.Floats("b", {2, 1, 1}, {1, 2});
  model.Floats("m", {3, 18}, std::vector<float>(54, 1));
  model.Floats("c", {1, 3}, {1, 2, 3});
  model.Integers("zero", {0});
  model.Integers("rest", {-1});
  SetAttribute(model.Add("Transpose", {"x"}, "t"), "perm", {0, 3, 1, 2});
  model.Add("Conv", {"t", "w"}, "v");
  model.Add("Add", {"v", "b"}, "a");
  SetAttribute(model.Add("Transpose", {"a"}, "u"), "perm", {0, 2, 3, 1});
  model.Add("Shape", {"u"}, "s");
  model.Add("Gather", {"s", "zero"}, "n");
  model.Add("Concat", {"n", "rest"}, "r");
  model.Add("Reshape", {"u", "r"}, "f");
  SetAttribute(model.Add("Transpose", {"m"}, "o"), "perm", {1, 0});
  model.Add("MatMul", {"f", "o"}, "p");
  model.Add("Add", {"p", "c"}, "l");
  model.Add("Dropout", {"l"}, "d");
  model.Add("Softmax", {"d"}, "y");
  return model.File();
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const Network tiny = Tiny();
  return {ModelOf(tiny, CountingWeights(tiny)).File(), Computed(), ""};
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  const auto read = ParseOnnx(
      absl::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!read.ok()) {
    Require(absl::IsInvalidArgument(read.status()));
    return 0;
  }
  Require(CheckNetwork(read->network).ok());
  Require(CheckWeights(read->network, read->weights).ok());
  // The weights were in the file.
  size_t values = 0;
  for (const LayerWeights& layer : read->weights.layers) {
    values += layer.weight.size() + layer.bias.size();
  }
  Require(values <= size + 4096);
  return 0;
}
