// Tests the use of GPU variants: several at a time, in streams and from
// threads, on a device other than the current one, and with tensors of more
// than 2^31 elements.
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/parity_testing.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

class OnGpu : public ::testing::TestWithParam<const Variant*> {
 protected:
  void SetUp() override {
    const auto device = cuda::FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }

  static const Variant& variant() { return *GetParam(); }
  static bool Takes(const Problem& problem) {
    return variant().supports(problem, TestResources()).ok();
  }

  static std::unique_ptr<Convolution> Create(const Problem& problem) {
    auto convolution = variant().Create(problem, TestResources());
    EXPECT_TRUE(convolution.ok()) << convolution.status();
    return *std::move(convolution);
  }

  static cuda::DeviceStream CreateStream() {
    auto stream = cuda::DeviceStream::Create();
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *std::move(stream);
  }

  // With the sign -1 the weights, and thus the outputs, are negated.
  static Tensors SignedTensors(const Problem& problem, int sign) {
    Tensors tensors = TensorsOf(problem, 0);
    for (float& weight : tensors.k) weight *= sign;
    for (double& value : tensors.y) value *= sign;
    return tensors;
  }

  static void Run(Convolution& convolution, const DeviceTensors& tensors,
                  Stream stream) {
    const absl::Status ran = convolution.Run(
        tensors.x.floats(), tensors.k.floats(), tensors.y.floats(), stream);
    EXPECT_TRUE(ran.ok()) << ran;
  }

  static double ErrorOf(const DeviceTensors& device, const Tensors& expected) {
    std::vector<float> got(expected.y.size());
    EXPECT_TRUE(
        cuda::CopyToHost(got.data(), device.y.data(), device.y.bytes()).ok());
    return RelativeError(got.data(), expected.y);
  }
};

// What a variant does not take is skipped elsewhere, so that a wrong refusal
// would pass. A small problem with any number of filters is taken or is not.
TEST_P(OnGpu, ASmallProblemIsTakenWithAnyNumberOfFilters) {
  const bool taken = Takes({2, 3, 16, 16, 1, 5});
  for (int64_t filters = 2; filters <= 64; ++filters) {
    ASSERT_EQ(Takes({2, 3, 16, 16, filters, 5}), taken)
        << "with " << filters << " filters";
  }
}

// So would a refusal of a filter's size.
TEST(Strips, AreTakenWithFiltersOfTheirSizes) {
  constexpr struct {
    const char* variant;
    int64_t least, most;
  } kSizes[] = {{"tensor_strips", 3, 11}, {"wgmma_strips", 2, 9}};
  const auto device = cuda::FindDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  if (device->compute_capability != 90) GTEST_SKIP() << "for an H200";
  for (const auto& [name, least, most] : kSizes) {
    const auto variant = FindVariant(Backend::kCuda, name);
    // The programs of tools/mutants have one kernel each, or two.
    if (!variant.ok() && Variants().size() <= 2) continue;
    ASSERT_TRUE(variant.ok()) << variant.status();
    for (int64_t K = 1; K <= 12; ++K) {
      const absl::Status status =
          (*variant)->supports({2, 1, 48, 48, 4, K}, Resources());
      EXPECT_EQ(status.ok(), least <= K && K <= most)
          << name << " with K = " << K << ": " << status;
    }
  }
}

// Attributes belong to a kernel, not to a convolution: a later convolution must
// not reduce the shared memory of an earlier one.
TEST_P(OnGpu, LaterConvolutionsDoNotDisturbEarlierOnes) {
  for (const int64_t channels : {1, 6}) {
    const Problem large = {2, channels, 48, 48, 16, 5};
    const Problem small = {1, channels, 9, 9, 3, 5};
    if (!Takes(large) || !Takes(small)) continue;
    const Tensors& tensors = TensorsOf(large, 0);
    const auto device = Upload(tensors);
    ASSERT_TRUE(device.ok()) << device.status();
    const auto first = Create(large);
    const auto second = Create(small);
    Run(*first, *device, /*stream=*/nullptr);
    EXPECT_LE(ErrorOf(*device, tensors), MaxError(variant(), large));
  }
}

// Two convolutions with different weights run many times in two streams that
// nothing orders.
TEST_P(OnGpu, ConvolutionsRunAtTheSameTimeInDifferentStreams) {
  for (const int64_t channels : {1, 6}) {
    const Problem problem = {40, channels, 48, 48, 16, 5};
    if (!Takes(problem)) continue;
    Tensors tensors[2];
    absl::StatusOr<DeviceTensors> device[2];
    std::unique_ptr<Convolution> convolutions[2];
    std::vector<cuda::DeviceStream> streams;
    for (int i = 0; i < 2; ++i) {
      tensors[i] = SignedTensors(problem, 1 - 2 * i);
      device[i] = Upload(tensors[i]);
      ASSERT_TRUE(device[i].ok()) << device[i].status();
      convolutions[i] = Create(problem);
      streams.push_back(CreateStream());
    }
    ASSERT_TRUE(cuda::Synchronize().ok());
    for (int turn = 0; turn < 20; ++turn) {
      for (int i = 0; i < 2; ++i) {
        Run(*convolutions[i], *device[i], streams[i].get());
      }
    }
    ASSERT_TRUE(cuda::Synchronize().ok());
    for (int i = 0; i < 2; ++i) {
      EXPECT_LE(ErrorOf(*device[i], tensors[i]), MaxError(variant(), problem))
          << "in stream " << i << ", " << ToString(problem);
    }
  }
}

// The same from two threads. Every turn has an output of its own, so that one
// turn with the other's weights is enough.
TEST_P(OnGpu, ConvolutionsRunAtTheSameTimeInDifferentThreads) {
  constexpr int kTurns = 30;
  const Problem problem = {4, 1, 48, 48, 16, 5};
  if (!Takes(problem)) GTEST_SKIP() << "does not take the problem";
  Tensors tensors[2];
  std::vector<DeviceTensors> devices[2];
  std::unique_ptr<Convolution> convolutions[2];
  std::vector<cuda::DeviceStream> streams;
  for (int i = 0; i < 2; ++i) {
    tensors[i] = SignedTensors(problem, 1 - 2 * i);
    for (int turn = 0; turn < kTurns; ++turn) {
      auto device = Upload(tensors[i]);
      ASSERT_TRUE(device.ok()) << device.status();
      devices[i].push_back(*std::move(device));
    }
    convolutions[i] = Create(problem);
    streams.push_back(CreateStream());
  }
  ASSERT_TRUE(cuda::Synchronize().ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      for (const DeviceTensors& device : devices[i]) {
        Run(*convolutions[i], device, streams[i].get());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(cuda::Synchronize().ok());
  for (int i = 0; i < 2; ++i) {
    for (int turn = 0; turn < kTurns; ++turn) {
      ASSERT_LE(ErrorOf(devices[i][turn], tensors[i]),
                MaxError(variant(), problem))
          << "in thread " << i << ", turn " << turn;
    }
  }
}

// Run works on the device that the convolution was created for, whichever is
// current, and leaves the current one as it was.
TEST_P(OnGpu, ConvolutionsBelongToTheirDevice) {
  if (cuda::CountDevices() < 2) GTEST_SKIP() << "there is one GPU only";
  const std::string before = cuda::FindDevice()->pci_bus_id;
  for (const int64_t channels : {1, 6}) {
    const Problem problem = {7, channels, 48, 48, 16, 5};
    Resources resources = TestResources();
    resources.device = 1;
    if (!variant().supports(problem, resources).ok()) continue;
    const Tensors& tensors = TensorsOf(problem, 0);
    absl::StatusOr<DeviceTensors> device;
    {
      const cuda::CurrentDevice second(1);
      ASSERT_TRUE(second.status().ok()) << second.status();
      device = Upload(tensors);
    }
    ASSERT_TRUE(device.ok()) << device.status();
    auto convolution = variant().Create(problem, resources);
    ASSERT_TRUE(convolution.ok()) << convolution.status();
    Run(**convolution, *device, /*stream=*/nullptr);
    EXPECT_EQ(cuda::FindDevice()->pci_bus_id, before);
    const cuda::CurrentDevice second(1);
    ASSERT_TRUE(cuda::Synchronize().ok());
    EXPECT_LE(ErrorOf(*device, tensors), MaxError(variant(), problem));
  }
}

TEST(Devices, ThatAreNotThereAreNamed) {
  if (cuda::CountDevices() == 0) GTEST_SKIP() << "there is no GPU";
  Resources resources;
  resources.device = cuda::CountDevices();
  const absl::Status status = (*FindVariant(Backend::kCuda, "naive"))
                                  ->Create({1, 1, 9, 9, 2, 3}, resources)
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("there is no GPU"), std::string::npos)
      << status;
}

std::string VariantName(const ::testing::TestParamInfo<const Variant*>& info) {
  return info.param->name;
}

// Without the toolkit there are none.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OnGpu);
INSTANTIATE_TEST_SUITE_P(CudaVariants, OnGpu,
                         ::testing::ValuesIn(CudaVariants()), VariantName);

// Tensors on the device that are too large for a reference: images repeat with
// a period, and a few thousand outputs are checked.
class HugeTensor
    : public ::testing::TestWithParam<std::tuple<const Variant*, Problem>> {};

constexpr int64_t kPeriod = 9973;
// More than 2^31 elements in the output, and in the input.
constexpr Problem kHugeOutput = {190 * kPeriod, 1, 8, 8, 32, 3};
constexpr Problem kHugeInput = {110 * kPeriod, 32, 8, 8, 1, 3};

TEST_P(HugeTensor, IndicesReachBeyondTwoToThe31) {
  const Variant& variant = *std::get<0>(GetParam());
  const Problem& problem = std::get<1>(GetParam());
  ASSERT_GT(std::max(problem.input_elements(), problem.output_elements()),
            int64_t{1} << 31);
  SkipUnlessSupported(variant, problem);
  if (IsSkipped()) return;
  const auto free_bytes = cuda::FreeMemory();
  ASSERT_TRUE(free_bytes.ok()) << free_bytes.status();
  // A GiB for the variant's workspace.
  if (*free_bytes < problem.min_bytes() + (int64_t{1} << 30)) {
    GTEST_SKIP() << "the device has not enough free memory";
  }

  Problem period = problem;
  period.batch = kPeriod;
  const Tensors& tensors = TensorsOf(period, 2);
  auto x = cuda::DeviceBuffer::Allocate(problem.input_elements() * 4);
  auto k = cuda::DeviceBuffer::Allocate(problem.kernel_elements() * 4);
  auto y = cuda::DeviceBuffer::Allocate(problem.output_elements() * 4);
  ASSERT_TRUE(x.ok() && k.ok() && y.ok());
  for (int64_t b = 0; b < problem.batch; b += kPeriod) {
    const int64_t per_image = problem.input_elements() / problem.batch;
    ASSERT_TRUE(cuda::CopyToDevice(x->floats() + b * per_image,
                                   tensors.x.data(), tensors.x.size() * 4)
                    .ok());
  }
  ASSERT_TRUE(cuda::CopyToDevice(k->data(), tensors.k.data(), k->bytes()).ok());
  ASSERT_TRUE(cuda::FillBytes(y->data(), 0xff, y->bytes()).ok());

  auto convolution = variant.Create(problem, TestResources());
  ASSERT_TRUE(convolution.ok()) << convolution.status();
  const absl::Status ran =
      (*convolution)->Run(x->floats(), k->floats(), y->floats(), nullptr);
  ASSERT_TRUE(ran.ok()) << ran;
  const absl::Status finished = cuda::Synchronize();
  ASSERT_TRUE(finished.ok()) << finished;

  const int64_t last = problem.output_elements() - 1;
  std::vector<int64_t> samples = {0, last};
  for (const int64_t power : {30, 31}) {
    if (int64_t{1} << power > last) continue;
    samples.push_back((int64_t{1} << power) - 1);
    samples.push_back(int64_t{1} << power);
  }
  std::mt19937_64 generator(20261121);
  std::uniform_int_distribution<int64_t> anywhere(0, last);
  while (samples.size() < 3000) samples.push_back(anywhere(generator));
  double difference = 0, norm = 0;
  for (const int64_t sample : samples) {
    float got;
    ASSERT_TRUE(cuda::CopyToHost(&got, y->floats() + sample, 4).ok());
    const double expected = tensors.y[sample % tensors.y.size()];
    if (variant.exact_on_integers) {
      ASSERT_EQ(got, expected) << "at output element " << sample;
    }
    difference += (got - expected) * (got - expected);
    norm += expected * expected;
  }
  EXPECT_LE(std::sqrt(difference / norm), MaxError(variant, problem));
}

std::string HugeName(
    const ::testing::TestParamInfo<HugeTensor::ParamType>& info) {
  const auto& [variant, problem] = info.param;
  return absl::StrCat(variant->name, problem.channels == 1 ? "_out" : "_in");
}

// Without the toolkit there are none.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HugeTensor);
INSTANTIATE_TEST_SUITE_P(CudaVariants, HugeTensor,
                         ::testing::Combine(::testing::ValuesIn(CudaVariants()),
                                            ::testing::Values(kHugeOutput,
                                                              kHugeInput)),
                         HugeName);

}  // namespace
}  // namespace convlab
