#include "common/network/network.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace convlab {
namespace {

constexpr Activation kTanh = Activation::kTanh;
constexpr Activation kRelu = Activation::kRelu;
constexpr MaxPool kHalve{2, 2, false};

// The course's convolutions have no bias. All fully connected layers have one.
constexpr ConvolutionLayer Convolve(int filters, int kernel_size) {
  return {filters, kernel_size, false};
}
constexpr FullyConnectedLayer Connect(int outputs) { return {outputs, true}; }

std::vector<Network> MakeNetworks() {
  const std::vector<Layer> fa17 = {
      Convolve(50, 5), kTanh, kHalve, Connect(500), kTanh, Connect(10),
  };
  const std::vector<Layer> sp18 = {
      Convolve(6, 5), kTanh, kHalve,      Convolve(16, 5),
      Connect(140),   kTanh, Connect(10),
  };
  return {
      // name, aliases, channels and size of the images, layers
      {"fa17-high", {"ece408-high"}, 1, 28, fa17, true},
      {"fa17-low", {"ece408-low"}, 1, 28, fa17, true},
      {"sp18", {}, 1, 64, sp18},
      {"fa18",
       {},
       1,
       72,
       {Convolve(12, 7), kTanh, kHalve, Convolve(24, 7), Connect(160), kTanh,
        Connect(10)}},
      {"sp19", {}, 1, 48, sp18},
      {"sp19-final", {}, 1, 72, sp18},
      {"sp19-baseline",
       {},
       1,
       48,
       {Convolve(12, 7), kTanh, kHalve, Convolve(24, 7), Connect(160), kTanh,
        Connect(10)}},
      {"fa19",
       {"ece408"},
       1,
       70,
       {Convolve(12, 5), kTanh, kHalve, Convolve(24, 5), Connect(160), kTanh,
        Connect(10)}},
      {"fa20",
       {},
       1,
       86,
       {Convolve(4, 7), kRelu, kHalve, Convolve(16, 7), kRelu,
        MaxPool{4, 4, true}, Connect(32), kRelu, Connect(10)}},
      {"lenet5",
       {},
       1,
       32,
       {ConvolutionLayer{6, 5, true}, kRelu, kHalve,
        ConvolutionLayer{16, 5, true}, kRelu, kHalve, Connect(120), kRelu,
        Connect(84), kRelu, Connect(10)}},
  };
}

TensorShape Output(const ConvolutionLayer& layer, const TensorShape& in) {
  return {layer.filters, in.size - layer.kernel_size + 1};
}
TensorShape Output(Activation, const TensorShape& in) { return in; }
TensorShape Output(const MaxPool& layer, const TensorShape& in) {
  return {in.channels, layer.Output(in.size)};
}
TensorShape Output(const FullyConnectedLayer& layer, const TensorShape&) {
  return {layer.outputs, 1};
}
TensorShape Output(const Layer& layer, const TensorShape& in) {
  return std::visit([&](const auto& kind) { return Output(kind, in); }, layer);
}

std::string Squared(int64_t size) { return absl::StrCat(size, "x", size); }

std::string ToString(const TensorShape& shape) {
  return absl::StrCat(shape.channels, "x", Squared(shape.size));
}

std::string Describe(const ConvolutionLayer& layer) {
  return absl::StrCat("a convolution with ", layer.filters, " filters of ",
                      Squared(layer.kernel_size));
}
std::string Describe(Activation) { return "an activation"; }
std::string Describe(const MaxPool& layer) {
  return absl::StrCat("a pooling of ", Squared(layer.size), " with stride ",
                      layer.stride);
}
std::string Describe(const FullyConnectedLayer& layer) {
  return absl::StrCat("a fully connected layer with ", layer.outputs,
                      " outputs");
}

// Whether a tensor of these dimensions, each below 2^31, has fewer than 2^31
// elements.
bool FewEnough(double a, double b, double c = 1, double d = 1) {
  return a * b * c * d < 0x1p31;
}

// The reason why the layer cannot have the input `in`; empty if it can.
std::string Fault(const ConvolutionLayer& layer, const TensorShape& in) {
  if (layer.filters < 1 || layer.kernel_size < 1) {
    return "expected at least 1 filter of 1x1";
  }
  if (layer.kernel_size > in.size) return "the filters are larger";
  if (!FewEnough(layer.filters, in.channels, layer.kernel_size,
                 layer.kernel_size)) {
    return "expected fewer than 2^31 weights";
  }
  return "";
}

std::string Fault(Activation, const TensorShape&) { return ""; }

std::string Fault(const MaxPool& layer, const TensorShape& in) {
  if (layer.size < 1 || layer.stride < 1) {
    return "expected a window and a stride of at least 1";
  }
  if (layer.size > in.size) return "the windows are larger";
  if ((layer.Output(in.size) - 1) * layer.stride >= in.size) {
    return "the last window begins outside of it";
  }
  return "";
}

std::string Fault(const FullyConnectedLayer& layer, const TensorShape& in) {
  if (layer.outputs < 1) return "expected at least 1 output";
  if (!FewEnough(layer.outputs, in.values())) {
    return "expected fewer than 2^31 weights";
  }
  return "";
}

std::string Fault(const Layer& layer, const TensorShape& in, bool flattened) {
  if (flattened && (std::holds_alternative<ConvolutionLayer>(layer) ||
                    std::holds_alternative<MaxPool>(layer))) {
    return "it follows a fully connected layer";
  }
  std::string fault =
      std::visit([&](const auto& kind) { return Fault(kind, in); }, layer);
  if (!fault.empty()) return fault;
  const TensorShape out = Output(layer, in);
  return FewEnough(out.channels, out.size, out.size)
             ? ""
             : "expected fewer than 2^31 outputs";
}

}  // namespace

std::vector<TensorShape> Network::Shapes() const {
  std::vector<TensorShape> shapes = {{image_channels, image_size}};
  for (const Layer& layer : layers) {
    shapes.push_back(Output(layer, shapes.back()));
  }
  return shapes;
}

std::vector<NetworkConvolution> Network::Convolutions() const {
  const std::vector<TensorShape> shapes = Shapes();
  std::vector<NetworkConvolution> convolutions;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto* const layer = std::get_if<ConvolutionLayer>(&layers[i]);
    if (layer == nullptr) continue;
    convolutions.push_back({i, shapes[i], shapes[i + 1], layer->kernel_size});
  }
  return convolutions;
}

size_t Network::FeatureLayers() const {
  const auto connected =
      std::find_if(layers.begin(), layers.end(), [](const Layer& layer) {
        return std::holds_alternative<FullyConnectedLayer>(layer);
      });
  return connected - layers.begin();
}

int64_t Network::Features() const { return Shapes()[FeatureLayers()].values(); }

int Network::Classes() const {
  return static_cast<int>(Shapes().back().values());
}

absl::Status CheckNetwork(const Network& network) {
  const std::string where = absl::StrCat("network ", network.name, ": ");
  TensorShape shape = {network.image_channels, network.image_size};
  if (shape.channels < 1 || shape.size < 1 ||
      !FewEnough(shape.channels, shape.size, shape.size)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "the images are ", ToString(shape),
                     ", expected 1x1x1 or more, and fewer than 2^31 values"));
  }
  bool flattened = false;
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    const std::string fault = Fault(layer, shape, flattened);
    if (!fault.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, "layer ", i + 1, " of ", network.layers.size(), ", ",
          std::visit([](const auto& kind) { return Describe(kind); }, layer),
          ", has an input of ", ToString(shape), ": ", fault));
    }
    flattened |= std::holds_alternative<FullyConnectedLayer>(layer);
    shape = Output(layer, shape);
  }
  constexpr int64_t kMostClasses = 256;  // labels are bytes
  if (shape.values() > kMostClasses) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, "the output is ", ToString(shape), ", expected at most ",
        kMostClasses, " values, one for each class"));
  }
  return absl::OkStatus();
}

const std::vector<Network>& Networks() {
  static const auto* const networks = new std::vector<Network>(MakeNetworks());
  return *networks;
}

absl::StatusOr<const Network*> FindNetwork(absl::string_view name) {
  std::vector<std::string> names;
  for (const Network& network : Networks()) {
    if (network.name == name) return &network;
    names.push_back(network.name);
    for (const std::string& alias : network.aliases) {
      if (alias == name) return &network;
      names.push_back(alias);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown model '", name,
                                                 "': expected one of ",
                                                 absl::StrJoin(names, ", ")));
}

}  // namespace convlab
