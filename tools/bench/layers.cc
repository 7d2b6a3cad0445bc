#include "tools/bench/layers.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/network/network.h"
#include "common/status/status.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

// The networks of the nine layers: fa17's two models are one network, and
// sp19's baseline ran in the first milestone only.
constexpr const char* kCourse[] = {"fa17", "fa18", "sp19", "fa19", "fa20"};

bool IsSizes(absl::string_view text) {
  return !text.empty() && (absl::ascii_isdigit(text[0]) || text[0] == '-') &&
         text.find(',') != absl::string_view::npos;
}

std::string SizesOf(const Problem& p) {
  return absl::StrJoin(
      {p.batch, p.channels, p.height, p.width, p.filters, p.kernel_size}, ",");
}

absl::StatusOr<NamedLayer> ParseSizes(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  int64_t sizes[6];
  bool numbers = parts.size() == 6;
  for (size_t i = 0; numbers && i < 6; ++i) {
    numbers = absl::SimpleAtoi(parts[i], &sizes[i]);
  }
  if (!numbers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the layer is '", text, "', expected six whole numbers B,C,H,W,M,K"));
  }
  const Problem problem = {sizes[0], sizes[1], sizes[2],
                           sizes[3], sizes[4], sizes[5]};
  RETURN_IF_ERROR(CheckProblem(problem));
  return NamedLayer{SizesOf(problem), problem};
}

// Returns the convolutions of a network under the names that the user may give,
// with `batch` images.
std::vector<NamedLayer> LayersOf(const Network& network,
                                 absl::string_view called, int64_t batch) {
  std::vector<NamedLayer> layers;
  const std::vector<NetworkConvolution> convolutions = network.Convolutions();
  for (size_t i = 0; i < convolutions.size(); ++i) {
    const NetworkConvolution& layer = convolutions[i];
    layers.push_back(
        {convolutions.size() == 1 ? std::string(called)
                                  : absl::StrCat(called, "-L", i + 1),
         {batch, layer.input.channels, layer.input.size, layer.input.size,
          layer.output.channels, layer.kernel_size}});
  }
  return layers;
}

std::vector<NamedLayer> CourseLayers(int64_t batch) {
  std::vector<NamedLayer> layers;
  for (const char* name : kCourse) {
    for (const Network& network : Networks()) {
      // fa17 is fa17-high.
      if (network.name != name && network.name != absl::StrCat(name, "-high")) {
        continue;
      }
      for (NamedLayer& layer : LayersOf(network, name, batch)) {
        layers.push_back(std::move(layer));
      }
    }
  }
  return layers;
}

// All named layers.
std::vector<NamedLayer> NamedLayers(int64_t batch) {
  std::vector<NamedLayer> layers = CourseLayers(batch);
  for (const Network& network : Networks()) {
    for (NamedLayer& layer : LayersOf(network, network.name, batch)) {
      bool known = false;
      for (const NamedLayer& other : layers) known |= other.name == layer.name;
      if (!known) layers.push_back(std::move(layer));
    }
  }
  return layers;
}

// Returns the layers of the network of that name, if it has several.
std::vector<NamedLayer> LayersOfNetwork(absl::string_view name) {
  for (const Network& network : Networks()) {
    if (network.name == name && network.Convolutions().size() > 1) {
      return LayersOf(network, name, 1);
    }
  }
  return {};
}

}  // namespace

absl::StatusOr<NamedLayer> ParseLayer(absl::string_view text, int64_t batch) {
  if (IsSizes(text)) return ParseSizes(text);
  std::vector<std::string> names;
  for (const NamedLayer& layer : NamedLayers(batch)) {
    const bool only = layer.name.find("-L") == std::string::npos;
    if (text == layer.name ||
        (only && text == absl::StrCat(layer.name, "-L1"))) {
      RETURN_IF_ERROR(CheckProblem(layer.problem));
      return layer;
    }
    names.push_back(layer.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown layer '", text, "', expected B,C,H,W,M,K or one of ",
      absl::StrJoin(names, ", ")));
}

absl::StatusOr<std::vector<NamedLayer>> ParseLayers(
    absl::string_view text, const std::vector<int64_t>& batches) {
  std::vector<NamedLayer> layers;
  const auto add = [&](absl::string_view name) -> absl::Status {
    for (const int64_t batch : batches) {
      ASSIGN_OR_RETURN(NamedLayer layer, ParseLayer(name, batch));
      layers.push_back(std::move(layer));
      if (IsSizes(name)) break;  // sizes contain the batch
    }
    return absl::OkStatus();
  };
  for (const absl::string_view group : absl::StrSplit(text, ';')) {
    const std::vector<absl::string_view> names =
        IsSizes(group) ? std::vector<absl::string_view>{group}
                       : absl::StrSplit(group, ',');
    for (const absl::string_view name : names) {
      const std::vector<NamedLayer> several =
          name == "all" ? CourseLayers(1) : LayersOfNetwork(name);
      for (const NamedLayer& layer : several) {
        RETURN_IF_ERROR(add(layer.name));
      }
      if (several.empty()) RETURN_IF_ERROR(add(name));
    }
  }
  return layers;
}

absl::StatusOr<std::vector<int64_t>> ParseBatches(absl::string_view text) {
  std::vector<int64_t> batches;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    if (!absl::SimpleAtoi(part, &batches.emplace_back()) ||
        batches.back() < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--batch is '", text,
                       "', expected whole numbers of at least 1, by commas"));
    }
  }
  return batches;
}

std::vector<NamedLayer> WithNeighbours(const std::vector<NamedLayer>& layers) {
  std::vector<NamedLayer> all;
  for (const NamedLayer& layer : layers) {
    all.push_back(layer);
    const auto add = [&](int64_t channels, int64_t size, int64_t filters,
                         int64_t kernel_size) {
      Problem problem = layer.problem;
      problem.channels += channels;
      problem.height += size;
      problem.width += size;
      problem.filters += filters;
      problem.kernel_size += kernel_size;
      if (CheckProblem(problem).ok()) {
        all.push_back({SizesOf(problem), problem, layer.name});
      }
    };
    for (const int by : {-1, 1}) add(0, by, 0, 0);
    for (const int by : {-1, 1}) add(0, 0, by, 0);
    add(1, 0, 0, 0);
    for (const int by : {-2, 2}) add(0, 0, 0, by);
  }
  return all;
}

}  // namespace convlab
