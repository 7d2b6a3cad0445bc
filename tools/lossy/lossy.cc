// Counts what scaled halves lose of the inputs of the course's layers, by the
// arithmetic and the tiles of the kernels (docs/numerics.md).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/dataset/fashion_mnist.h"
#include "common/files/files.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "common/weights/weights.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/cuda/lib/known_devices.h"
#include "kernels/convolution/cuda/lib/output_tiles.h"
#include "kernels/convolution/cuda/lib/round_to_half.h"
#include "kernels/convolution/cuda/lib/scaling.h"
#include "kernels/convolution/cuda/strips/mma_plan.h"
#include "kernels/convolution/cuda/strips/wgmma_plan.h"
#include "kernels/convolution/cuda/wgmma/plan.h"
#include "kernels/convolution/fastest.h"
#include "kernels/inference/inference.h"
#include "tools/bench/layers.h"

namespace convlab {
namespace {

using cuda::kH200;
using cuda::OutputTiles;
using cuda::RoundToHalf;
using cuda::TileArea;

constexpr int64_t kImages = 1000;
constexpr int64_t kPlanned = 10000;  // for which the plans are made

// The tiles of the kernel that is the fastest on an H200.
struct Tiling {
  std::string kernel;
  OutputTiles tiles;
};

absl::StatusOr<Tiling> TilingOf(Problem problem) {
  problem.batch = kPlanned;
  const auto height = static_cast<int>(problem.output_height());
  const auto width = static_cast<int>(problem.output_width());
  std::vector<std::pair<double, Tiling>> found;
  if (cuda::StripsPlan plan; cuda::MakeStripsPlan(problem, kH200, &plan)) {
    found.push_back({cuda::EstimateStripsNs(problem, kH200),
                     {"tensor_strips",
                      cuda::TilesOfRows(height, width, plan.strip_rows())}});
  }
  if (cuda::WgmmaStripsPlan plan;
      cuda::MakeWgmmaStripsPlan(problem, kH200, &plan)) {
    found.push_back(
        {cuda::EstimateWgmmaStripsNs(problem, kH200),
         {"wgmma_strips", cuda::TilesOfRows(height, width, plan.strip_rows)}});
  }
  constexpr int kParts = 2;
  if (cuda::WgmmaPlan plan;
      cuda::MakeWgmmaPlan(problem, kParts, kH200, &plan)) {
    found.push_back({cuda::EstimateWgmmaNs(problem, kParts, kH200),
                     {"tensor_wgmma", cuda::SlabTiles(plan)}});
  }
  if (found.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("no kernel takes ", ToString(problem)));
  }
  return std::min_element(
             found.begin(), found.end(),
             [](const auto& a, const auto& b) { return a.first < b.first; })
      ->second;
}

uint32_t Bits(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, sizeof(bits));
  return bits;
}

// What is lost of a value that was scaled to v, as in halves.cuh.
double LostOf(double v) {
  const double rest = v - RoundToHalf(v);
  const double lost = std::fabs(rest - RoundToHalf(rest));
  return std::fabs(v) < cuda::kLeastNormal
             ? std::max<double>(lost, cuda::kDenormalLost)
             : lost;
}

// Of some values that share a scale.
struct Lost {
  int count = 0;  // values that are lossy
  double most = 0;
};

// Adds a value that may be lossy; returns whether it is.
bool AddLost(float value, int exponent, Lost& lost) {
  if (value == 0) return false;
  const double v = std::ldexp(static_cast<double>(value), exponent);
  if (std::fabs(v) >= std::ldexp(1., cuda::kLeastExponent)) return false;
  const double of_value = LostOf(v);
  if (of_value <= std::fabs(v) * cuda::kKeptShare) return false;
  ++lost.count;
  lost.most = std::max(lost.most, of_value);
  return true;
}

struct Counts {
  int64_t tiles = 0, small = 0, lossy = 0;
  int64_t outputs = 0, looked_at = 0, uncertain = 0;
};

// A layer's filters, and what is known of each.
class Filters {
 public:
  Filters(const Problem& problem, const float* k) {
    const int64_t terms =
        problem.channels * problem.kernel_size * problem.kernel_size;
    for (int64_t m = 0; m < problem.filters; ++m) {
      float most = 0;
      for (int64_t i = 0; i < terms; ++i) {
        most = std::max(most, std::fabs(k[m * terms + i]));
      }
      exponents.push_back(cuda::FilterExponent(Bits(most)));
      Lost lost;
      for (int64_t i = 0; i < terms; ++i) {
        AddLost(k[m * terms + i], exponents.back(), lost);
      }
      lossy.push_back(lost.count);
    }
  }

  std::vector<int> exponents, lossy;
};

void CountTile(const Problem& p, const TileArea& area, const float* x,
               const float* y, const Filters& filters, Counts& counts) {
  const auto K = static_cast<int>(p.kernel_size);
  const int rows = area.rows + K - 1, columns = area.columns + K - 1;
  const auto input = [&](int64_t c, int row, int column) {
    return x[((area.image * p.channels + c) * p.height + area.row + row) *
                 p.width +
             area.column + column];
  };
  float most = 0, least = HUGE_VALF;
  for (int64_t c = 0; c < p.channels; ++c) {
    for (int i = 0; i < rows * columns; ++i) {
      const float v = std::fabs(input(c, i / columns, i % columns));
      most = std::max(most, v);
      if (v != 0) least = std::min(least, v);
    }
  }
  ++counts.tiles;
  counts.outputs += p.filters * area.rows * area.columns;
  const int exponent = cuda::InputExponent(Bits(most));
  const bool small = Bits(least) < cuda::LeastKept(exponent);
  counts.small += small;
  // The outputs that lossy inputs reach.
  std::vector<bool> reached(int64_t{area.rows} * area.columns);
  Lost lost;
  int64_t kept = 0;
  for (int64_t c = 0; small && c < p.channels; ++c) {
    for (int i = 0; i < rows * columns; ++i) {
      const int row = i / columns, column = i % columns;
      const float value = input(c, row, column);
      if (!AddLost(value, exponent, lost)) {
        kept += value != 0;
        continue;
      }
      for (int h = std::max(row - K + 1, 0); h <= std::min(row, area.rows - 1);
           ++h) {
        for (int w = std::max(column - K + 1, 0);
             w <= std::min(column, area.columns - 1); ++w) {
          reached[h * area.columns + w] = true;
        }
      }
    }
  }
  counts.lossy += lost.count > 0;
  const bool dominated = lost.count > kept;
  const bool everywhere =
      dominated || lost.count * K * K >= area.rows * area.columns;
  const auto terms = static_cast<int>(p.channels * K * K);
  for (int64_t m = 0; m < p.filters; ++m) {
    if (lost.count == 0 && filters.lossy[m] == 0) continue;
    const double least_sum =
        cuda::LeastCertainSum(filters.lossy[m]) +
        cuda::LeastCertainSum(std::min(lost.count, terms),
                              static_cast<float>(lost.most));
    const double least_certain =
        2 * std::ldexp(least_sum, -exponent - filters.exponents[m]);
    for (int i = 0; i < area.rows * area.columns; ++i) {
      if (!reached[i] && !everywhere && filters.lossy[m] == 0) continue;
      ++counts.looked_at;
      const double output =
          y[((area.image * p.filters + m) * p.output_height() + area.row +
             i / area.columns) *
                p.output_width() +
            area.column + i % area.columns];
      counts.uncertain += dominated || std::fabs(output) <= least_certain;
    }
  }
}

// Counts tiles of a convolution whose outputs are computed.
void Count(const Problem& problem, const float* x, const float* k,
           const float* y, const OutputTiles& tiles, Workers& workers,
           Counts& counts) {
  const Filters filters(problem, k);
  std::vector<Counts> of_image(problem.batch);
  workers.For(problem.batch, /*grain=*/1,
              [&](int /*worker*/, int64_t begin, int64_t end) {
                for (int64_t i = begin * tiles.of_image;
                     i < end * tiles.of_image; ++i) {
                  CountTile(problem, tiles.At(i), x, y, filters,
                            of_image[i / tiles.of_image]);
                }
              });
  for (const Counts& c : of_image) {
    counts.tiles += c.tiles, counts.small += c.small, counts.lossy += c.lossy;
    counts.outputs += c.outputs, counts.looked_at += c.looked_at;
    counts.uncertain += c.uncertain;
  }
}

absl::Status Compute(const Problem& problem, const float* x, const float* k,
                     float* y, Workers& workers) {
  Resources resources;
  resources.workers = &workers;
  ASSIGN_OR_RETURN(const Variant* const variant,
                   FastestVariant(Backend::kCpu, problem, resources));
  ASSIGN_OR_RETURN(const auto convolution, variant->Create(problem, resources));
  return convolution->Run(x, k, y, nullptr);
}

void Print(const std::string& inputs, const std::string& layer,
           const std::string& kernel, const Counts& c) {
  const auto percent = [](int64_t part, int64_t all) {
    return 100. * static_cast<double>(part) /
           static_cast<double>(std::max<int64_t>(all, 1));
  };
  absl::PrintF("| %s | %s | `%s` | %.2f | %.2f | %.4f | %d |\n", inputs, layer,
               kernel, percent(c.small, c.tiles), percent(c.lossy, c.tiles),
               percent(c.looked_at, c.outputs), c.uncertain);
  std::fflush(stdout);
}

absl::Status CountRandom(const NamedLayer& layer, Workers& workers) {
  Problem problem = layer.problem;
  problem.batch = kImages;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<float> x(problem.input_elements()), k(problem.kernel_elements()),
      y(problem.output_elements());
  for (float& v : x) v = static_cast<float>(uniform(random));
  for (float& v : k) v = static_cast<float>(uniform(random));
  RETURN_IF_ERROR(Compute(problem, x.data(), k.data(), y.data(), workers));
  ASSIGN_OR_RETURN(const Tiling tiling, TilingOf(problem));
  Counts counts;
  Count(problem, x.data(), k.data(), y.data(), tiling.tiles, workers, counts);
  Print("uniform", layer.name, tiling.kernel, counts);
  return absl::OkStatus();
}

// Counts what the convolutions of a network are given.
class CountingConvolver : public Convolver {
 public:
  explicit CountingConvolver(Workers& workers) : workers_(workers) {}

  absl::Status Convolve(size_t index, const Problem& problem, const float* x,
                        const float* k, float* y, OpTime& /*time*/) override {
    RETURN_IF_ERROR(Compute(problem, x, k, y, workers_));
    if (counts.size() <= index) counts.resize(index + 1);
    kernels.resize(counts.size());
    ASSIGN_OR_RETURN(const Tiling tiling, TilingOf(problem));
    kernels[index] = tiling.kernel;
    Count(problem, x, k, y, tiling.tiles, workers_, counts[index]);
    return absl::OkStatus();
  }

  std::vector<Counts> counts;  // by convolution
  std::vector<std::string> kernels;

 private:
  Workers& workers_;
};

absl::Status CountNetwork(const Network& network, const NetworkWeights& weights,
                          const ImageSet& images, Workers& workers) {
  CountingConvolver convolver(workers);
  InferenceOptions options;
  options.convolver = &convolver;
  RETURN_IF_ERROR(
      RunInference(network, weights, images, kImages, options, workers)
          .status());
  for (size_t i = 0; i < convolver.counts.size(); ++i) {
    Print("a network's", absl::StrCat(network.name, "-L", i + 1),
          convolver.kernels[i], convolver.counts[i]);
  }
  return absl::OkStatus();
}

absl::Status CountAll(const std::string& folder) {
  Workers workers(Workers::Available());
  ASSIGN_OR_RETURN(const std::vector<NamedLayer> layers,
                   ParseLayers("all", {kImages}));
  ASSIGN_OR_RETURN(const Dataset data,
                   LoadFashionMnist(FashionMnistFolder(), "t10k"));
  std::vector<std::pair<const Network*, NetworkWeights>> models;
  for (const char* name : {"fa17-high", "fa18", "sp19", "fa19", "fa20"}) {
    ASSIGN_OR_RETURN(const Network* const network, FindNetwork(name));
    ASSIGN_OR_RETURN(
        NetworkWeights weights,
        LoadWeights(absl::StrCat(folder, "/", name, ".safetensors"), *network));
    models.emplace_back(network, std::move(weights));
  }
  absl::PrintF(
      "| inputs | layer | kernel | small, %% of tiles | lossy, %% of tiles | "
      "looked at, %% of outputs | uncertain outputs |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const NamedLayer& layer : layers) {
    RETURN_IF_ERROR(CountRandom(layer, workers));
  }
  for (const auto& [network, weights] : models) {
    RETURN_IF_ERROR(CountNetwork(*network, weights, data.images, workers));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("lossy: expected the folder of the trained weights\n", stderr);
    return 2;
  }
  return convlab::RunMain(
      "lossy", [&] { return convlab::CountAll(convlab::UserPath(argv[1])); });
}
