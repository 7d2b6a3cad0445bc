#include "common/weights/parameters.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace convlab {

std::vector<LayerParameters> ParametersOf(const Network& network) {
  const std::vector<TensorShape> shapes = network.Shapes();
  std::vector<LayerParameters> all;
  int convolutions = 0, connected = 0;
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    if (const auto* convolution = std::get_if<ConvolutionLayer>(&layer)) {
      const int64_t size = convolution->kernel_size;
      all.push_back({i,
                     absl::StrCat("conv", convolutions + 1),
                     {absl::StrCat("arg:new", convolutions),
                      absl::StrCat("arg:convolution", convolutions)},
                     {convolution->filters, shapes[i].channels, size, size},
                     convolution->bias});
      ++convolutions;
    } else if (const auto* full = std::get_if<FullyConnectedLayer>(&layer)) {
      all.push_back({i,
                     absl::StrCat("fc", connected + 1),
                     {absl::StrCat("arg:fullyconnected", connected)},
                     {full->outputs, shapes[i].values()},
                     full->bias});
      ++connected;
    }
  }
  return all;
}

}  // namespace convlab
