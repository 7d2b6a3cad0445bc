// The networks with random weights on which inference is tested, and what
// double precision computes for them.
#ifndef KERNELS_INFERENCE_INFERENCE_TESTING_H_
#define KERNELS_INFERENCE_INFERENCE_TESTING_H_

#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "common/dataset/idx.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/weights/weights.h"
#include "gtest/gtest.h"
#include "kernels/convolution/convolution.h"
#include "kernels/inference/inference.h"

namespace convlab {

// A network of the table or one of the tests'.
Network FindTestNetwork(const std::string& name);

using InferenceCase = std::tuple<std::string, Backend>;

// For INSTANTIATE_TEST_SUITE_P: some networks on both backends.
std::vector<InferenceCase> InferenceCases();
std::string InferenceCaseName(
    const ::testing::TestParamInfo<InferenceCase>& info);

// Prepares eleven random images and a plain variant; skips what needs a GPU
// where there is none.
class InferenceTest : public ::testing::TestWithParam<InferenceCase> {
 protected:
  void SetUp() override;

  std::vector<float> Random(int64_t count, float range);

  // The logits of image `index`, layer by layer.
  std::vector<double> Logits(int64_t index) const;

  bool on_gpu() const { return std::get<1>(GetParam()) == Backend::kCuda; }

  Network network_ = FindTestNetwork(std::get<0>(GetParam()));
  const size_t convolutions_ = network_.Convolutions().size();
  ImageSet images_;
  NetworkWeights weights_;
  InferenceOptions options_;
  Workers workers_{3};
  std::mt19937 generator_{7};
};

}  // namespace convlab

#endif  // KERNELS_INFERENCE_INFERENCE_TESTING_H_
