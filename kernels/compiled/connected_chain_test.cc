// The kernel of fully connected layers one after another, by the definition.
#include "kernels/compiled/cuda/connected_chain.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/round_to_half.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/error.h"
#include "kernels/layers/cuda/launches.h"

namespace convlab::cuda {
namespace {

// The inputs of the first layer, and the outputs of each.
using Widths = std::vector<int>;

DeviceBuffer Upload(const std::vector<float>& values) {
  auto buffer = DeviceBuffer::Allocate(values.size() * sizeof(float));
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_TRUE(
      CopyToDevice(buffer->data(), values.data(), buffer->bytes()).ok());
  return *std::move(buffer);
}

// What the weights and images are.
enum class Values {
  kIntegers,
  kHalves,
  kMixed,  // weights of halves in the first layer, of floats behind it
  kFloats
};

class ConnectedChainTest : public ::testing::TestWithParam<Widths> {
 protected:
  // Every second layer has no bias, and the activations take turns.
  void Make(Values kind) {
    const bool integers = kind == Values::kIntegers;
    std::mt19937 random(5);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::uniform_int_distribution<int> integer(-2, 2);
    const auto draw = [&](int64_t count) {
      std::vector<float> values(count);
      for (float& v : values) v = integers ? integer(random) : uniform(random);
      return values;
    };
    weights_.clear(), biases_.clear(), buffers_.clear();
    chain_ = {};
    const Widths& widths = GetParam();
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
      ChainLayer& layer = chain_.layers[chain_.count++];
      ASSERT_TRUE(TakesChainLayer(widths[i], widths[i + 1], &layer.shape));
      weights_.push_back(draw(int64_t{widths[i]} * widths[i + 1]));
      const bool halves = integers || kind == Values::kHalves ||
                          (kind == Values::kMixed && i == 0);
      if (halves) {
        for (float& v : weights_.back()) {
          v = static_cast<float>(RoundToHalf(v));
        }
      }
      biases_.push_back(draw(widths[i + 1]));
      const DeviceBuffer weight = Upload(weights_.back());
      auto packed =
          DeviceBuffer::Allocate(layer.shape.packed_floats() * sizeof(float));
      ASSERT_TRUE(packed.ok()) << packed.status();
      ASSERT_TRUE(ToStatus(LaunchPackMatrix(layer.shape, weight.floats(),
                                            packed->floats()))
                      .ok());
      ASSERT_NO_FATAL_FAILURE(KeepHighHalves(*packed, halves, &layer));
      layer.packed = packed->floats();
      buffers_.push_back(*std::move(packed));
      buffers_.push_back(Upload(biases_.back()));
      layer.bias = i % 2 == 0 ? buffers_.back().floats() : nullptr;
      layer.activation =
          integers || i % 2 == 0 ? Activation::kRelu : Activation::kTanh;
    }
    images_ = draw(kMost * widths.front());
  }

  // Waits for the packed weights, and gives the layer their high halves if
  // these are all of them, which `halves` says.
  void KeepHighHalves(const DeviceBuffer& packed, bool halves,
                      ChainLayer* layer) {
    auto high = DeviceBuffer::Allocate(layer->shape.words() / 2 * 4);
    auto lost = DeviceBuffer::Allocate(4);
    ASSERT_TRUE(high.ok() && lost.ok());
    uint32_t bits = 0;
    ASSERT_TRUE(CopyToDevice(lost->data(), &bits, sizeof(bits)).ok());
    ASSERT_TRUE(
        ToStatus(LaunchKeepHighHalves(layer->shape, packed.floats(),
                                      static_cast<uint32_t*>(high->data()),
                                      static_cast<uint32_t*>(lost->data())))
            .ok());
    ASSERT_TRUE(CopyToHost(&bits, lost->data(), sizeof(bits)).ok());
    ASSERT_EQ(bits == 0, halves);
    if (!halves) return;
    layer->high = static_cast<const uint32_t*>(high->data());
    buffers_.push_back(*std::move(high));
  }

  // The first `begin` floats of device memory belong to no image.
  std::vector<float> Run(int64_t images, int begin = 0) {
    std::vector<float> shifted(begin);
    shifted.insert(shifted.end(), images_.begin(), images_.end());
    const DeviceBuffer in = Upload(shifted);
    std::vector<float> result(images * GetParam().back());
    auto out = DeviceBuffer::Allocate(result.size() * sizeof(float));
    EXPECT_TRUE(out.ok() && FillBytes(out->data(), 0xff, out->bytes()).ok() &&
                Synchronize().ok());
    EXPECT_TRUE(ToStatus(LaunchChain(chain_, images, in.floats() + begin,
                                     out->floats(), nullptr))
                    .ok());
    EXPECT_TRUE(CopyToHost(result.data(), out->data(), out->bytes()).ok());
    return result;
  }

  // An image's results in double precision.
  std::vector<double> Expected(int64_t image) const {
    const Widths& widths = GetParam();
    const auto first = images_.begin() + image * widths[0];
    std::vector<double> values(first, first + widths[0]);
    for (int i = 0; i < chain_.count; ++i) {
      std::vector<double> next(widths[i + 1]);
      for (int o = 0; o < widths[i + 1]; ++o) {
        double sum = chain_.layers[i].bias == nullptr ? 0 : biases_[i][o];
        for (int j = 0; j < widths[i]; ++j) {
          sum += values[j] * weights_[i][o * widths[i] + j];
        }
        next[o] = chain_.layers[i].activation == Activation::kTanh
                      ? std::tanh(sum)
                      : std::max(sum, 0.0);
      }
      values = next;
    }
    return values;
  }

  // Makes NaN of all packed weights, so that only their high halves by
  // themselves give results.
  void SpoilPackedWeights() {
    for (int i = 0; i < chain_.count; ++i) {
      const MatrixShape& shape = chain_.layers[i].shape;
      ASSERT_TRUE(FillBytes(const_cast<float*>(chain_.layers[i].packed) +
                                shape.columns(),
                            0xff,
                            shape.words() * static_cast<int64_t>(sizeof(float)))
                      .ok());
    }
    ASSERT_TRUE(Synchronize().ok());
  }

  static constexpr int64_t kMost = 133;

  Chain chain_;
  std::vector<std::vector<float>> weights_, biases_;
  std::vector<DeviceBuffer> buffers_;
  std::vector<float> images_;
};

TEST_P(ConnectedChainTest, IsWhatTheDefinitionGivesInAnyBatch) {
  if (!FindDevice().ok() || !RunsChain()) GTEST_SKIP() << "for a GPU";
  for (const Values kind :
       {Values::kIntegers, Values::kHalves, Values::kMixed, Values::kFloats}) {
    const bool integers = kind == Values::kIntegers;
    SCOPED_TRACE(integers                  ? "integers"
                 : kind == Values::kHalves ? "weights of halves"
                 : kind == Values::kMixed  ? "weights of halves, and of floats"
                                           : "floats");
    ASSERT_NO_FATAL_FAILURE(Make(kind));
    const std::vector<float> all = Run(kMost);
    EXPECT_EQ(Run(kMost), all);
    // Low halves that are zero change nothing.
    for (int i = 0; i < chain_.count; ++i) chain_.layers[i].high = nullptr;
    EXPECT_EQ(Run(kMost), all);
    // The copy engine does not load images that begin anywhere.
    EXPECT_EQ(Run(kMost, 1), all);
    const int outputs = GetParam().back();
    for (int64_t i = 0; i < kMost; ++i) {
      const std::vector<double> expected = Expected(i);
      double largest = 1;
      for (const double v : expected) largest = std::max(largest, v);
      for (int o = 0; o < outputs; ++o) {
        // Layers of floats enlarge the errors of those before them.
        ASSERT_NEAR(all[i * outputs + o], expected[o],
                    largest * (integers ? 1e-5 : 1e-4))
            << "image " << i << ", output " << o;
      }
    }
    for (const int64_t images : {1, 2, 15, 16, 17, 33, 65}) {
      const std::vector<float> some = Run(images);
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()))
          << images << " images";
    }
  }
}

// As many images as blocks take 40 of, and without low halves.
TEST_P(ConnectedChainTest, ManyImagesGiveTheSameBits) {
  const absl::StatusOr<DeviceFacts> device = FindDevice();
  if (!device.ok() || !RunsChain()) GTEST_SKIP() << "for a GPU";
  constexpr int64_t kMany = 5000;
  for (const Values kind : {Values::kHalves, Values::kFloats}) {
    ASSERT_NO_FATAL_FAILURE(Make(kind));
    const std::vector<float> few = Run(kMost);
    const int inputs = GetParam().front(), outputs = GetParam().back();
    for (int64_t i = kMost * inputs; i < kMany * inputs; ++i) {
      images_.push_back(images_[i - kMost * inputs]);
    }
    const auto expect_repeated = [&](const std::vector<float>& many) {
      for (int64_t i = 0; i < kMany * outputs; ++i) {
        ASSERT_EQ(many[i], few[i % (kMost * outputs)]) << "output " << i;
      }
    };
    expect_repeated(Run(kMany));
    if (kind == Values::kFloats || device->compute_capability != 90 ||
        inputs % 4 != 0) {
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(SpoilPackedWeights());
    EXPECT_EQ(Run(kMost), few);
    expect_repeated(Run(kMany));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layers, ConnectedChainTest,
    ::testing::Values(Widths{400, 120, 84, 10},  // lenet5
                      Widths{1296, 32, 10},      // fa20
                      Widths{65, 7}, Widths{1, 1}, Widths{3, 128, 9, 128, 1},
                      Widths{68, 7}, Widths{4, 128, 9, 128, 1},
                      Widths{256, 128, 128, 128, 128}, Widths{130, 60, 60},
                      Widths{2048, 33}),
    [](const auto& one) { return absl::StrJoin(one.param, "_"); });

TEST(ConnectedChain, LeavesLargeLayersToSingleProducts) {
  MatrixShape shape;
  EXPECT_TRUE(TakesChainLayer(kMostChainInputs, kMostChainOutputs, &shape));
  EXPECT_FALSE(TakesChainLayer(kMostChainInputs + 1, 10, &shape));
  EXPECT_FALSE(TakesChainLayer(10, kMostChainOutputs + 1, &shape));
}

}  // namespace
}  // namespace convlab::cuda
