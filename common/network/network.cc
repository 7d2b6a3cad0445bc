#include "common/network/network.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace convlab {
namespace {

constexpr MaxPool kHalve{2, 2, false};
constexpr Activation kNone = Activation::kNone;
constexpr Activation kTanh = Activation::kTanh;
constexpr Activation kRelu = Activation::kRelu;

std::vector<Network> MakeNetworks() {
  return {
      // name, aliases, image, {C, M, K, activation, pool}..., hidden, its
      // activation
      {"fa17-high",
       {"ece408-high"},
       28,
       {{1, 50, 5, kTanh, kHalve}},
       500,
       kTanh,
       true},
      {"fa17-low",
       {"ece408-low"},
       28,
       {{1, 50, 5, kTanh, kHalve}},
       500,
       kTanh,
       true},
      {"fa18",
       {},
       72,
       {{1, 12, 7, kTanh, kHalve}, {12, 24, 7, kNone, {}}},
       160,
       kTanh},
      {"sp19",
       {},
       48,
       {{1, 6, 5, kTanh, kHalve}, {6, 16, 5, kNone, {}}},
       140,
       kTanh},
      {"sp19-baseline",
       {},
       48,
       {{1, 12, 7, kTanh, kHalve}, {12, 24, 7, kNone, {}}},
       160,
       kTanh},
      {"fa19",
       {"ece408"},
       70,
       {{1, 12, 5, kTanh, kHalve}, {12, 24, 5, kNone, {}}},
       160,
       kTanh},
      {"fa20",
       {},
       86,
       {{1, 4, 7, kRelu, kHalve}, {4, 16, 7, kRelu, {4, 4, true}}},
       32,
       kRelu},
  };
}

}  // namespace

std::vector<StageShape> Network::StageShapes() const {
  std::vector<StageShape> shapes;
  int64_t size = image_size;
  for (const ConvolutionStage& stage : stages) {
    const int64_t output = size - stage.kernel_size + 1;
    const int64_t pooled = stage.pool.Output(output);
    shapes.push_back({size, output, pooled});
    size = pooled;
  }
  return shapes;
}

int64_t Network::Flattened() const {
  const int64_t size = StageShapes().back().pooled_size;
  return stages.back().output_channels * size * size;
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
