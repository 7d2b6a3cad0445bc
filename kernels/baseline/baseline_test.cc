// Tests the baseline on a GPU: its convolution against float64, its layers
// against those of the CPU. kernels/inference/models_test.cc tests trained
// models.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/weights/parameters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/baseline/convolution.h"
#include "kernels/baseline/layers.h"
#include "kernels/baseline/network.h"
#include "kernels/compiled/compiled.h"
#include "kernels/convolution/checking/families.h"
#include "kernels/convolution/checking/host_run.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/library.h"
#include "kernels/layers/layers.h"

namespace convlab {
namespace {

using cuda::DeviceBuffer;
using ::testing::HasSubstr;

Workers& TestWorkers() {
  static Workers* const workers = new Workers(Workers::Available());
  return *workers;
}

TEST(BaselineWithoutGpu, SaysWhatIsMissing) {
  const auto layers = MakeBaselineLayers();
  if (layers.ok()) GTEST_SKIP() << "nothing is missing";
  EXPECT_EQ(layers.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(layers.status().message()),
              ::testing::AnyOf(HasSubstr("GPU"), HasSubstr("cuDNN"),
                               HasSubstr("cuBLAS")));
  const Problem problem{1, 1, 5, 5, 1, 3};
  EXPECT_EQ(kCudnnVariant.Create(problem, {}).status(), layers.status());
  EXPECT_EQ(MeasureCudnn(problem, AccuracyClass::kFp32, TestWorkers()).status(),
            layers.status());
  EXPECT_EQ(CreateCudnnPlan(problem, "FFT").status(), layers.status());
  EXPECT_EQ(FindBaselinePlans(**FindNetwork("sp19"), 1, TestWorkers()).status(),
            layers.status());
}

class BaselineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto layers = MakeBaselineLayers();
    if (absl::IsUnavailable(layers.status())) {
      GTEST_SKIP() << layers.status().message();
    }
    ASSERT_TRUE(layers.ok()) << layers.status();
    layers_ = *std::move(layers);
  }

  std::vector<float> Random(int64_t count, float range = 1) {
    std::uniform_real_distribution<float> distribution(-range, range);
    std::vector<float> values(count);
    for (float& value : values) value = distribution(generator_);
    return values;
  }

  static DeviceBuffer Upload(const std::vector<float>& values) {
    DeviceBuffer buffer = Allocate(values.size());
    EXPECT_TRUE(
        cuda::CopyToDevice(buffer.data(), values.data(), buffer.bytes()).ok());
    return buffer;
  }

  static DeviceBuffer Allocate(int64_t floats) {
    auto buffer = DeviceBuffer::Allocate(floats * 4);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_TRUE(cuda::FillBytes(buffer->data(), 0xff, buffer->bytes()).ok());
    return *std::move(buffer);
  }

  static std::vector<float> Download(const DeviceBuffer& buffer) {
    std::vector<float> values(buffer.bytes() / 4);
    EXPECT_TRUE(
        cuda::CopyToHost(values.data(), buffer.data(), buffer.bytes()).ok());
    return values;
  }

  static void ExpectNear(const std::vector<float>& values,
                         const std::vector<float>& expected, float tolerance) {
    ASSERT_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i) {
      // Also false for NaN.
      ASSERT_TRUE(std::abs(values[i] - expected[i]) <= tolerance)
          << values[i] << " instead of " << expected[i] << " at " << i;
    }
  }

  std::unique_ptr<BaselineLayers> layers_;
  std::mt19937 generator_{11};
};

TEST_F(BaselineTest, PartsOfCudnnComeFromOneFolder) {
  std::string folder;
  for (const cuda::Library* library : cuda::OpenedLibraries()) {
    if (library->name != "cuDNN") continue;
    folder = library->path.substr(0, library->path.rfind('/'));
  }
  std::set<std::string> folders;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t name = line.find("/libcudnn");
    if (name == std::string::npos) continue;
    folders.insert(line.substr(line.find('/'), name - line.find('/')));
  }
  EXPECT_THAT(folders, ::testing::ElementsAre(folder));
}

TEST_F(BaselineTest, ConvolutionStaysInItsClass) {
  std::vector<Problem> problems = {
      {2, 3, 13, 40, 6, 3}, {2, 17, 12, 12, 8, 3}, {2500, 1, 6, 6, 2, 3}};
  for (const Network& network : Networks()) {
    for (const NetworkConvolution& layer : network.Convolutions()) {
      problems.push_back({5, layer.input.channels, layer.input.size,
                          layer.input.size, layer.output.channels,
                          layer.kernel_size});
    }
  }
  for (const Problem& problem : problems) {
    SCOPED_TRACE(ToString(problem));
    const std::vector<float> x = Random(problem.input_elements());
    const std::vector<float> k = Random(problem.kernel_elements());
    const auto y = RunOnHostTensors(kCudnnVariant, problem, {}, x, k);
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_LE(
        RelativeError(y->data(), ReferenceConvolution(problem, x.data(),
                                                      k.data(), TestWorkers())),
        MaxRelativeError(AccuracyClass::kFp32));
  }
}

TEST_F(BaselineTest, MeasuresAlgorithmsAndEnginesInBothLayouts) {
  const Problem problem{16, 12, 33, 33, 24, 5};
  CudnnSearch search;
  search.rule.min_samples = 10;
  for (const AccuracyClass accuracy :
       {AccuracyClass::kFp32, AccuracyClass::kTf32, AccuracyClass::kFp16}) {
    SCOPED_TRACE(Name(accuracy));
    const auto measured =
        MeasureCudnn(problem, accuracy, TestWorkers(), search);
    ASSERT_TRUE(measured.ok()) << measured.status();
    EXPECT_THAT(measured->version, HasSubstr("9."));
    const CudnnPlan* const best = measured->best(accuracy);
    ASSERT_NE(best, nullptr);
    EXPECT_GE(best->samples_ns.size(), 10u);
    EXPECT_GT(best->median_ns, 1000);
    // An error of zero would mean that nothing was computed.
    EXPECT_GT(best->error.relative, 1e-9);
    std::set<std::string> names;
    int algorithms = 0, engines_that_ran = 0;
    for (const CudnnPlan& plan : measured->plans) {
      const std::string name = absl::StrCat(plan.layout, " ", plan.algorithm);
      SCOPED_TRACE(name);
      EXPECT_TRUE(names.insert(name).second);
      const bool engine = plan.algorithm.rfind("engine ", 0) == 0;
      const bool heuristic =
          plan.algorithm.find("heuristic") != std::string::npos;
      algorithms += engine || heuristic ? 0 : 1;
      if (!plan.rejected.empty()) continue;
      engines_that_ran += engine ? 1 : 0;
      EXPECT_LE(plan.error.relative, MaxRelativeError(accuracy));
      EXPECT_GE(plan.samples_ns.size(), 1u);
      // None of the plans of the class that were fully measured is faster.
      if (plan.samples_ns.size() >= 10 && plan.accuracy == accuracy) {
        EXPECT_GE(plan.median_ns, best->median_ns);
      }
    }
    EXPECT_EQ(algorithms, 16);
    EXPECT_GT(engines_that_ran, 1);
  }
  EXPECT_EQ(MeasureCudnn(problem, AccuracyClass::kBf16, TestWorkers())
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(BaselineTest, PlansAreOfTheClassOfTheirWorstOutput) {
  const Problem problem{5, 3, 20, 20, 4, 5};
  CudnnSearch search;
  search.rule.min_samples = StoppingRule::kFewestSamples;
  search.label_all = true;
  const auto measured =
      MeasureCudnn(problem, AccuracyClass::kFp32, TestWorkers(), search);
  ASSERT_TRUE(measured.ok()) << measured.status();
  bool keeps = false;
  size_t recipes = 0;
  for (const DataFamily& family : DataFamilies()) {
    recipes += RecipesToCompare(family).size();
  }
  for (const CudnnPlan& plan : measured->plans) {
    if (!plan.rejected.empty() || !plan.accuracy) continue;
    SCOPED_TRACE(plan.algorithm);
    EXPECT_EQ(plan.families.size(), recipes);
    const bool ok =
        std::all_of(plan.families.begin(), plan.families.end(),
                    [](const FamilyError& one) { return one.worst.ok(); });
    EXPECT_EQ(*plan.accuracy,
              ok ? AccuracyClass::kFp32 : AccuracyClass::kFp32Normwise);
    keeps = keeps || ok;
  }
  EXPECT_TRUE(keeps);
  EXPECT_EQ(measured->best(AccuracyClass::kFp32)->accuracy,
            AccuracyClass::kFp32);
}

TEST_F(BaselineTest, ActivationsAreTheCpus) {
  for (const Activation activation :
       {Activation::kNone, Activation::kTanh, Activation::kRelu}) {
    std::vector<float> values = Random(100003, 5);
    const DeviceBuffer device = Upload(values);
    ASSERT_TRUE(
        layers_->Activate(activation, values.size(), device.floats()).ok());
    Activate(activation, values.size(), values.data(), TestWorkers());
    ExpectNear(Download(device), values, 1e-6f);
  }
}

TEST_F(BaselineTest, PoolingIsTheCpus) {
  struct Case {
    MaxPool pool;
    int64_t planes;
    int64_t size;
  };
  // The last two are fa20's second pooling, whose last windows extend beyond
  // the image, and more planes than cuDNN takes at a time.
  for (const Case& c : {Case{{2, 2, false}, 7, 24}, Case{{2, 2, false}, 3, 25},
                        Case{{3, 2, true}, 5, 10}, Case{{4, 4, true}, 160, 34},
                        Case{{2, 2, false}, 150001, 24}}) {
    SCOPED_TRACE(absl::StrCat(c.planes, " planes of ", c.size));
    // Values are negative, so that a zero from outside the image would show.
    std::vector<float> in = Random(c.planes * c.size * c.size);
    for (float& value : in) value -= 2;
    const int64_t pooled = c.pool.Output(c.size);
    std::vector<float> expected(c.planes * pooled * pooled);
    PoolMax(c.pool, Activation::kNone, c.planes, c.size, in.data(),
            expected.data(), TestWorkers());
    const DeviceBuffer device_in = Upload(in);
    const DeviceBuffer device_out = Allocate(expected.size());
    const absl::Status status = layers_->PoolMax(
        c.pool, c.planes, c.size, device_in.floats(), device_out.floats());
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Download(device_out), expected);
  }
}

TEST_F(BaselineTest, BiasIsTheCpus) {
  const int64_t batch = 33, channels = 6, area = 784;
  std::vector<float> values = Random(batch * channels * area);
  const std::vector<float> bias = Random(channels);
  const DeviceBuffer device = Upload(values), device_bias = Upload(bias);
  const absl::Status status = layers_->AddBias(
      batch, channels, area, device_bias.floats(), device.floats());
  ASSERT_TRUE(status.ok()) << status;
  AddBias(batch, channels, area, bias.data(), values.data(), TestWorkers());
  EXPECT_EQ(Download(device), values);
}

TEST_F(BaselineTest, FullyConnectedAndSoftmaxAreTheCpus) {
  const int64_t batch = 33, inputs = 700, outputs = 10;
  const std::vector<float> in = Random(batch * inputs);
  const std::vector<float> weight = Random(outputs * inputs, 0.1f);
  const std::vector<float> bias = Random(outputs);
  const DeviceBuffer device_in = Upload(in), device_weight = Upload(weight),
                     device_bias = Upload(bias);
  const DeviceBuffer device_out = Allocate(batch * outputs);
  absl::Status status = layers_->FullyConnected(
      batch, inputs, outputs, device_in.floats(), device_weight.floats(),
      device_bias.floats(), device_out.floats());
  ASSERT_TRUE(status.ok()) << status;
  std::vector<float> expected(batch * outputs);
  FullyConnected(
      batch, inputs, outputs, in.data(),
      PackWeights(inputs, outputs, weight.data(), TestWorkers()).get(),
      bias.data(), expected.data(), TestWorkers());
  ExpectNear(Download(device_out), expected, 1e-5f);
  status = layers_->Softmax(batch, outputs, device_out.floats());
  ASSERT_TRUE(status.ok()) << status;
  Softmax(batch, outputs, expected.data());
  ExpectNear(Download(device_out), expected, 1e-5f);
}

// Whole networks, with and without biases, layer by layer as one graph.
TEST_F(BaselineTest, NetworksAnswerAsOnTheCpu) {
  constexpr int64_t kImages = 5;
  for (const char* name : {"lenet5", "fa20", "sp19"}) {
    SCOPED_TRACE(name);
    const Network& network = **FindNetwork(name);
    NetworkWeights weights;
    weights.layers.resize(network.layers.size());
    for (const LayerParameters& own : ParametersOf(network)) {
      int64_t count = 1;
      for (const int64_t size : own.weight_shape) count *= size;
      LayerWeights& layer = weights.layers[own.layer];
      layer.weight = Random(count, 0.05f);
      if (own.has_bias) layer.bias = Random(own.weight_shape[0], 0.05f);
    }
    std::vector<uint8_t> images(kImages * 28 * 28);
    for (uint8_t& pixel : images) pixel = static_cast<uint8_t>(generator_());
    const auto compiled =
        CompileForCpu(network, weights, /*image_size=*/28, TestWorkers());
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const int classes = network.Classes();
    std::vector<float> expected(kImages * classes);
    ASSERT_TRUE((*compiled)->Run(images.data(), kImages, expected.data()).ok());
    const int size = network.image_size;
    std::vector<float> floats(kImages * size * size);
    EnlargeToFloats(images.data(), kImages, 28, size, floats.data(),
                    TestWorkers());
    const auto plans = FindBaselinePlans(network, kImages, TestWorkers());
    ASSERT_TRUE(plans.ok()) << plans.status();
    ASSERT_EQ(plans->size(), 2u);
    for (const Pixels pixels : {Pixels::kBytes, Pixels::kFloats}) {
      const auto made = MakeBaselineNetwork(network, weights, /*image_size=*/28,
                                            pixels, kImages, *plans);
      ASSERT_TRUE(made.ok()) << made.status();
      auto in = DeviceBuffer::Allocate(floats.size() * 4);
      ASSERT_TRUE(in.ok()) << in.status();
      ASSERT_TRUE(
          pixels == Pixels::kBytes
              ? cuda::CopyToDevice(in->data(), images.data(), images.size())
                    .ok()
              : cuda::CopyToDevice(in->data(), floats.data(), in->bytes())
                    .ok());
      const DeviceBuffer logits = Allocate(kImages * classes);
      const DeviceBuffer labels = Allocate(kImages);
      const auto replay =
          Record(**made, {in->data(), kImages, logits.floats(),
                          static_cast<uint8_t*>(labels.data())});
      ASSERT_TRUE(replay.ok()) << replay.status();
      ASSERT_TRUE(cuda::FillBytes(logits.data(), 0xff, logits.bytes()).ok());
      ASSERT_TRUE(cuda::Synchronize().ok());
      ASSERT_TRUE((*replay)(nullptr).ok());
      std::vector<float> found(expected.size());
      ASSERT_TRUE(
          cuda::CopyToHost(found.data(), logits.data(), logits.bytes()).ok());
      std::vector<uint8_t> found_labels(kImages);
      ASSERT_TRUE(
          cuda::CopyToHost(found_labels.data(), labels.data(), kImages).ok());
      double largest = 0;
      for (const float value : expected) {
        largest = std::max<double>(largest, std::fabs(value));
      }
      for (int64_t i = 0; i < kImages * classes; ++i) {
        ASSERT_NEAR(found[i], expected[i], 1e-5 * largest) << "logit " << i;
      }
      for (int64_t i = 0; i < kImages; ++i) {
        EXPECT_EQ(found_labels[i],
                  AnswerOf(&found[i * classes], classes).label);
      }
      EXPECT_TRUE(absl::IsInvalidArgument((*made)->Prepare(kImages + 1)));
    }
  }
}

}  // namespace
}  // namespace convlab
