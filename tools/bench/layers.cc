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

// The networks that the nine layers are of: fa17's two models are one network,
// and sp19's baseline ran in the first milestone only.
constexpr const char* kCourse[] = {"fa17", "fa18", "sp19", "fa19", "fa20"};

bool IsSizes(absl::string_view text) {
  return !text.empty() && (absl::ascii_isdigit(text[0]) || text[0] == '-') &&
         text.find(',') != absl::string_view::npos;
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
  NamedLayer layer = {
      absl::StrJoin(sizes, ","),
      {sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]}};
  RETURN_IF_ERROR(CheckProblem(layer.problem));
  return layer;
}

// The layers of a network as the user may call it, with `batch` images.
std::vector<NamedLayer> LayersOf(const Network& network,
                                 absl::string_view called, int64_t batch) {
  std::vector<NamedLayer> layers;
  const std::vector<StageShape> shapes = network.StageShapes();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const ConvolutionStage& stage = network.stages[i];
    layers.push_back(
        {shapes.size() == 1 ? std::string(called)
                            : absl::StrCat(called, "-L", i + 1),
         {batch, stage.input_channels, shapes[i].input_size,
          shapes[i].input_size, stage.output_channels, stage.kernel_size}});
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

// Whatever has a name.
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

absl::StatusOr<std::vector<NamedLayer>> ParseLayers(absl::string_view text,
                                                    int64_t batch) {
  std::vector<NamedLayer> layers;
  for (const absl::string_view group : absl::StrSplit(text, ';')) {
    const std::vector<absl::string_view> names =
        IsSizes(group) ? std::vector<absl::string_view>{group}
                       : absl::StrSplit(group, ',');
    for (const absl::string_view name : names) {
      if (name == "all") {
        for (NamedLayer& layer : CourseLayers(batch)) {
          RETURN_IF_ERROR(CheckProblem(layer.problem));
          layers.push_back(std::move(layer));
        }
        continue;
      }
      ASSIGN_OR_RETURN(NamedLayer layer, ParseLayer(name, batch));
      layers.push_back(std::move(layer));
    }
  }
  return layers;
}

}  // namespace convlab
