// Every variant against the float64 reference, on the course's layers and on
// the shapes where indexing goes wrong. The output is poisoned before each run.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/host_run.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "kernels/simd/cpu_target.h"

namespace convlab {
namespace {

// The layers of all networks at `batches`, each shape once.
void AddLayers(std::initializer_list<int64_t> batches,
               std::vector<Problem>& problems) {
  std::set<std::string> seen;
  for (const Network& network : Networks()) {
    const std::vector<StageShape> shapes = network.StageShapes();
    for (size_t i = 0; i < shapes.size(); ++i) {
      const ConvolutionStage& stage = network.stages[i];
      for (const int64_t batch : batches) {
        const Problem problem = {batch,
                                 stage.input_channels,
                                 shapes[i].input_size,
                                 shapes[i].input_size,
                                 stage.output_channels,
                                 stage.kernel_size};
        if (seen.insert(ToString(problem)).second) problems.push_back(problem);
      }
    }
  }
}

std::vector<Problem> Problems(Backend backend) {
  std::vector<Problem> problems;
  const Problem odd[] = {
      {1, 1, 1, 1, 1, 1},     // nothing but one product
      {2, 3, 9, 9, 4, 1},     // K = 1
      {3, 2, 7, 7, 5, 7},     // H = W = K: one output position
      {2, 4, 5, 31, 3, 5},    // one output row
      {2, 4, 31, 5, 3, 5},    // one output column
      {2, 3, 13, 40, 6, 3},   // non-square images
      {2, 3, 40, 13, 6, 4},   // and an even kernel
      {2, 17, 12, 12, 8, 3},  // C = 17
      {2, 6, 20, 20, 1, 5},   // M = 1
      {2, 3, 16, 16, 50, 5},  // M = 50
      {1, 64, 10, 10, 128, 3},
      {1, 2, 30, 30, 3, 11},
      {1, 1, 300, 301, 2, 5},  // an image of many blocks
      {1, 1500, 8, 9, 2, 7},   // one unrolled column exceeds the workspace
      {257, 1, 6, 6, 2, 3},    // many small images
      // Few channels and filters that no layer has.
      {2, 1, 19, 22, 9, 6},
      {2, 1, 40, 37, 13, 4},
      {2, 1, 75, 33, 30, 7},
      {2, 1, 40, 51, 5, 9},
      {2, 1, 40, 40, 9, 10},
      {2, 2, 40, 41, 7, 6},
      {2, 2, 40, 38, 5, 8},
      {3, 3, 37, 43, 7, 7},
      {3, 4, 23, 31, 14, 5},
      {5, 2, 29, 27, 30, 3},
      {2, 3, 30, 35, 5, 9},
      {3, 8, 21, 23, 7, 2},
      {3, 5, 21, 23, 7, 5},
      {3, 2, 29, 31, 9, 8},
  };
  problems.insert(problems.end(), std::begin(odd), std::end(odd));
  if (backend == Backend::kCpu) {
    AddLayers({1, 3}, problems);
    // An output that no cache holds.
    problems.push_back({310, 1, 50, 26, 24, 3});
    // Every remainder of a register tile's filters and of a row's lanes.
    for (int64_t i = 1; i <= 13; ++i) {
      problems.push_back({2, 2, 7, 30 + i, i, 3});
      problems.push_back({1, 2, 4, 2 + i, 14 - i, 2});
    }
    return problems;
  }
  AddLayers({1, 7, 100}, problems);
  const Problem large[] = {
      {2, 2, 45, 50, 3, 37},   // a filter larger than any tile
      {8767, 2, 9, 8, 5, 3},   // a batch that nothing divides
      {70000, 1, 5, 4, 3, 3},  // more images than a grid has in y or z
      {3, 1, 5, 5, 70000, 3},  // and more filters
      // So many that a block of threads which goes from one piece of work to
      // the next does so ten times and more.
      {3000, 6, 22, 22, 16, 5},
      {2000, 1, 48, 48, 6, 5},
      {600, 1, 70, 70, 12, 5},
      {1400, 3, 35, 41, 12, 7},
      {900, 12, 33, 33, 24, 7},
      {1500, 3, 13, 40, 47, 7},
      {1500, 3, 13, 41, 47, 7},
      {1500, 2, 30, 31, 24, 7},
      {1500, 8, 29, 31, 16, 5},
      {1400, 12, 33, 33, 24, 5},
      {1500, 4, 40, 40, 16, 7},
      {1500, 21, 22, 18, 7, 5},
      // Whose sums wgmma's kernel takes out of the tensor cores on the way.
      {1500, 8, 23, 32, 6, 7},
      {1500, 10, 8, 10, 8, 5},
      {1500, 17, 23, 14, 13, 5},
      {1500, 27, 14, 12, 23, 5},
      {1500, 25, 19, 21, 22, 5},
      {150, 1, 41, 39, 7, 5},  // few_images cuts it as a line
  };
  problems.insert(problems.end(), std::begin(large), std::end(large));
  return problems;
}

using Case = std::tuple<const Variant*, Problem, CpuTarget>;

// All problems of all variants, at each instruction set where a variant has
// code for several. The variants of one problem follow each other, so that its
// tensors are made once.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
    for (const Problem& problem : Problems(backend)) {
      for (const Variant* variant : Variants()) {
        if (variant->backend != backend) continue;
        for (const CpuTarget target : SupportedCpuTargets()) {
          cases.emplace_back(variant, problem, target);
          if (!variant->by_cpu_target) break;
        }
      }
    }
  }
  return cases;
}

// More workers than cores, so that a race has a chance to show.
Workers& TestWorkers() {
  static Workers* const workers = new Workers(3);
  return *workers;
}

// A problem's input tensors and what must come out.
struct Tensors {
  std::vector<float> x, k;
  std::vector<double> y;
};

// Of integers up to `largest`, or of floats up to 1 where that is 0. Kept until
// another problem is asked for.
const Tensors& TensorsOf(const Problem& problem, int largest) {
  static std::string* const name = new std::string;
  static auto* const kept = new std::map<int, Tensors>;
  if (*name != ToString(problem)) kept->clear();
  *name = ToString(problem);
  const auto [entry, is_new] = kept->try_emplace(largest);
  Tensors& tensors = entry->second;
  if (!is_new) return tensors;
  std::mt19937 generator(20261121);
  const auto fill = [&](int64_t count, int limit, std::vector<float>& values) {
    std::uniform_real_distribution<float> floats(-1, 1);
    std::uniform_int_distribution<int> integers(-limit, limit);
    values.resize(count);
    for (float& value : values) {
      value = largest == 0 ? floats(generator) : integers(generator);
    }
  };
  fill(problem.input_elements(), largest, tensors.x);
  fill(problem.kernel_elements(), largest / 2, tensors.k);
  tensors.y = ReferenceConvolution(problem, tensors.x.data(), tensors.k.data(),
                                   TestWorkers());
  return tensors;
}

// The classes are stated for sums like the course's. The rounding errors of a
// longer float32 sum grow with the square root of its length.
double MaxError(const Variant& variant, const Problem& problem) {
  const double terms =
      problem.channels * problem.kernel_size * problem.kernel_size;
  return MaxRelativeError(variant.accuracy) *
         std::max(1.0, std::sqrt(terms / 2048));
}

// Skips what cannot run here.
void SkipUnlessSupported(const Variant& variant, const Problem& problem) {
  if (variant.backend != Backend::kCuda) return;
  const auto device = cuda::FindDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  const absl::Status supported = variant.supports(problem, Resources());
  // A variant may decline a problem, but it has to say why.
  if (!supported.ok()) {
    EXPECT_GT(supported.message().size(), 10u);
    GTEST_SKIP() << supported.message();
  }
}

class Parity : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto& [variant, problem, target] = GetParam();
    SkipUnlessSupported(*variant, problem);
    ASSERT_TRUE(ForceCpuTarget(Name(target)).ok());
  }

  void TearDown() override { ASSERT_TRUE(ForceCpuTarget("auto").ok()); }

  // y of the variant, which ran twice; nothing may be left over from the first
  // run.
  std::vector<float> Run(const Tensors& tensors, bool deterministic) {
    const Variant* const variant = std::get<0>(GetParam());
    const Problem& problem = std::get<1>(GetParam());
    Resources resources;
    resources.workers = &TestWorkers();
    auto y = RunOnHostTensors(*variant, problem, resources, tensors.x,
                              tensors.k, 2, deterministic);
    EXPECT_TRUE(y.ok()) << y.status();
    if (!y.ok()) {
      return std::vector<float>(problem.output_elements(),
                                std::numeric_limits<float>::quiet_NaN());
    }
    return *std::move(y);
  }
};

// Sums of products of small integers are exact in float32 in any order; of very
// small ones also where products are summed in half precision.
TEST_P(Parity, IntegersAreExact) {
  const Variant* const variant = std::get<0>(GetParam());
  const Problem& problem = std::get<1>(GetParam());
  ASSERT_LT(
      problem.channels * problem.kernel_size * problem.kernel_size * 8 * 4,
      1 << 24);
  const bool half = variant->accuracy == AccuracyClass::kFp16 ||
                    variant->accuracy == AccuracyClass::kBf16;
  const Tensors& tensors = TensorsOf(problem, half ? 2 : 8);
  const std::vector<float> y = Run(tensors, true);
  if (!variant->exact_on_integers) {
    EXPECT_LE(RelativeError(y.data(), tensors.y), MaxError(*variant, problem));
    return;
  }
  for (size_t i = 0; i < y.size(); ++i) {
    if (y[i] != tensors.y[i]) {
      FAIL() << "output element " << i << " is " << y[i] << " instead of "
             << tensors.y[i];
    }
  }
}

TEST_P(Parity, RandomFloatsStayInTheAccuracyClass) {
  const Variant* const variant = std::get<0>(GetParam());
  const Problem& problem = std::get<1>(GetParam());
  const Tensors& tensors = TensorsOf(problem, 0);
  // Atomic additions may come in another order and round differently.
  const std::vector<float> y = Run(tensors, false);
  EXPECT_LE(RelativeError(y.data(), tensors.y), MaxError(*variant, problem));
}

std::string CaseName(const ::testing::TestParamInfo<Parity::ParamType>& info) {
  const auto& [variant, problem, target] = info.param;
  return absl::StrCat(
      Name(variant->backend), "_", variant->name, "_",
      variant->by_cpu_target ? absl::StrCat(Name(target), "_") : "",
      absl::StrReplaceAll(ToString(problem), {{" ", "_"}, {"=", ""}}), "_",
      info.index);
}

INSTANTIATE_TEST_SUITE_P(AllVariants, Parity, ::testing::ValuesIn(Cases()),
                         CaseName);

// The variants that scale their operands, and the one that stands in for them
// where images are few: they promise their class for operands of any scale, and
// infinities and NaN where the reference has them.
class Range : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto variant = FindVariant(Backend::kCuda, GetParam());
    if (!variant.ok()) GTEST_SKIP() << "built without CUDA";
    variant_ = *variant;
    const auto device = cuda::FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    absl::Status supported;
    for (const Problem& problem : kProblems) {
      const absl::Status status = variant_->supports(problem, Resources());
      if (status.ok()) problems_.push_back(problem);
      supported.Update(status);
    }
    if (problems_.empty()) GTEST_SKIP() << supported.message();
  }

  // Runs the variant, and expects of each image by itself what the reference
  // says: NaN and infinities in their places, and the rest within the class.
  void ExpectReference(const Problem& problem, const std::vector<float>& x,
                       const std::vector<float>& k) {
    Resources resources;
    resources.workers = &TestWorkers();
    const auto y = RunOnHostTensors(*variant_, problem, resources, x, k, 2);
    ASSERT_TRUE(y.ok()) << y.status();
    const std::vector<double> reference =
        ReferenceConvolution(problem, x.data(), k.data(), TestWorkers());
    const size_t image = reference.size() / problem.batch;
    for (int64_t b = 0; b < problem.batch; ++b) {
      std::vector<float> got;
      std::vector<double> expected;
      for (size_t i = b * image; i < (b + 1) * image; ++i) {
        if (std::isfinite(reference[i])) {
          got.push_back((*y)[i]);
          expected.push_back(reference[i]);
        } else if (std::isnan(reference[i])) {
          ASSERT_TRUE(std::isnan((*y)[i])) << "element " << i;
        } else {
          ASSERT_EQ((*y)[i], reference[i]) << "element " << i;
        }
      }
      EXPECT_LE(RelativeError(got.data(), expected),
                MaxError(*variant_, problem))
          << ToString(problem) << ", image " << b;
    }
  }

  // One and several channels, whole images and tiles, rows of even and odd
  // length, a few images and many.
  static constexpr Problem kProblems[] = {
      {5, 1, 20, 22, 6, 5},  {5, 1, 21, 23, 6, 7},    {5, 1, 30, 41, 6, 9},
      {5, 6, 22, 22, 16, 5}, {2, 3, 90, 131, 7, 4},   {2, 1, 90, 131, 7, 4},
      {5, 3, 21, 23, 6, 7},  {700, 4, 20, 23, 17, 7}, {150, 1, 41, 39, 7, 5},
      {5, 2, 2, 2, 3, 2},    {3, 1, 4, 2, 3, 2}};

  const Variant* variant_ = nullptr;
  std::vector<Problem> problems_;  // those that it takes
};

TEST_P(Range, OneOperandMayHaveAnyScale) {
  for (const Problem& problem : problems_) {
    const Tensors& tensors = TensorsOf(problem, 0);
    for (const float scale : {1e-20f, 1e-12f, 1e-6f, 1e6f, 1e12f, 1e20f}) {
      SCOPED_TRACE(scale);
      const auto scaled = [&](std::vector<float> values) {
        for (float& value : values) value *= scale;
        return values;
      };
      ExpectReference(problem, scaled(tensors.x), tensors.k);
      ExpectReference(problem, tensors.x, scaled(tensors.k));
    }
  }
}

TEST_P(Range, OppositeScalesOfBothOperandsCancel) {
  for (const Problem& problem : problems_) {
    const Tensors& tensors = TensorsOf(problem, 0);
    for (const float scale : {1e-36f, 1e36f}) {
      SCOPED_TRACE(scale);
      std::vector<float> x = tensors.x, k = tensors.k;
      for (float& value : x) value *= scale;
      for (float& value : k) value /= scale;
      ExpectReference(problem, x, k);
    }
  }
}

TEST_P(Range, EveryImageHasItsOwnScale) {
  for (const Problem& problem : problems_) {
    const Tensors& tensors = TensorsOf(problem, 0);
    std::vector<float> x = tensors.x;
    const int64_t image = x.size() / problem.batch;
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = std::ldexp(x[i], static_cast<int>(i / image) * 23 - 40);
    }
    ExpectReference(problem, x, tensors.k);
  }
}

TEST_P(Range, InfinitiesAndNanGoWhereTheReferenceHasThem) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Problem& problem : problems_) {
    const Tensors& tensors = TensorsOf(problem, 0);
    // A zero weight makes NaN of an infinity.
    std::vector<float> k = tensors.k;
    k[1] = 0;
    std::vector<float> x = tensors.x;
    x[x.size() / 2] = kInfinity;
    ExpectReference(problem, x, k);
    x[x.size() / 3] = -kInfinity;
    x[x.size() - 1] = kNan;
    ExpectReference(problem, x, k);
    k[k.size() / 2] = -kInfinity;
    ExpectReference(problem, tensors.x, k);
    k[k.size() - 1] = kNan;
    ExpectReference(problem, tensors.x, k);
  }
}

TEST_P(Range, TensorsNeedNoMoreAlignmentThanAFloats) {
  for (const Problem& problem : problems_) {
    const Tensors& tensors = TensorsOf(problem, 8);
    auto x = cuda::DeviceBuffer::Allocate((tensors.x.size() + 1) * 4);
    auto k = cuda::DeviceBuffer::Allocate((tensors.k.size() + 1) * 4);
    auto y = cuda::DeviceBuffer::Allocate((tensors.y.size() + 1) * 4);
    ASSERT_TRUE(x.ok() && k.ok() && y.ok());
    ASSERT_TRUE(cuda::CopyToDevice(x->floats() + 1, tensors.x.data(),
                                   tensors.x.size() * 4)
                    .ok());
    ASSERT_TRUE(cuda::CopyToDevice(k->floats() + 1, tensors.k.data(),
                                   tensors.k.size() * 4)
                    .ok());
    ASSERT_TRUE(cuda::FillBytes(y->data(), 0xff, y->bytes()).ok());
    Resources resources;
    resources.workers = &TestWorkers();
    auto convolution = variant_->Create(problem, resources);
    ASSERT_TRUE(convolution.ok()) << convolution.status();
    const absl::Status ran =
        (*convolution)
            ->Run(x->floats() + 1, k->floats() + 1, y->floats() + 1, nullptr);
    ASSERT_TRUE(ran.ok()) << ran;
    std::vector<float> got(tensors.y.size() + 1);
    ASSERT_TRUE(cuda::CopyToHost(got.data(), y->floats(), y->bytes()).ok());
    EXPECT_TRUE(std::isnan(got[0])) << "written before the output";
    EXPECT_LE(RelativeError(got.data() + 1, tensors.y),
              MaxError(*variant_, problem))
        << ToString(problem);
  }
}

std::string RangeName(const ::testing::TestParamInfo<const char*>& info) {
  return info.param;
}

INSTANTIATE_TEST_SUITE_P(ScaledVariants, Range,
                         ::testing::Values("few_images", "tensor_split",
                                           "tensor_strips", "tensor_wgmma",
                                           "wgmma_fp16", "wgmma_strips"),
                         RangeName);

// A kernel's attributes are its own, not a convolution's: one that is created
// later must not take shared memory from one that was there before.
TEST(Convolutions, OfOneVariantDoNotDisturbEachOther) {
  if (const auto device = cuda::FindDevice(); !device.ok()) {
    GTEST_SKIP() << device.status().message();
  }
  Resources resources;
  resources.workers = &TestWorkers();
  for (const Variant* variant : Variants()) {
    if (variant->backend != Backend::kCuda) continue;
    SCOPED_TRACE(variant->name);
    for (const int64_t channels : {1, 6}) {
      const Problem large = {2, channels, 48, 48, 16, 5};
      const Problem small = {1, channels, 9, 9, 3, 5};
      if (!variant->supports(large, Resources()).ok() ||
          !variant->supports(small, Resources()).ok()) {
        continue;
      }
      const Tensors& tensors = TensorsOf(large, 0);
      auto x = cuda::DeviceBuffer::Allocate(tensors.x.size() * 4);
      auto k = cuda::DeviceBuffer::Allocate(tensors.k.size() * 4);
      auto y = cuda::DeviceBuffer::Allocate(tensors.y.size() * 4);
      ASSERT_TRUE(x.ok() && k.ok() && y.ok());
      ASSERT_TRUE(
          cuda::CopyToDevice(x->data(), tensors.x.data(), x->bytes()).ok());
      ASSERT_TRUE(
          cuda::CopyToDevice(k->data(), tensors.k.data(), k->bytes()).ok());
      auto first = variant->Create(large, resources);
      auto second = variant->Create(small, resources);
      ASSERT_TRUE(first.ok()) << first.status();
      ASSERT_TRUE(second.ok()) << second.status();
      const absl::Status ran =
          (*first)->Run(x->floats(), k->floats(), y->floats(), nullptr);
      ASSERT_TRUE(ran.ok()) << ran;
      std::vector<float> got(tensors.y.size());
      ASSERT_TRUE(cuda::CopyToHost(got.data(), y->data(), y->bytes()).ok());
      EXPECT_LE(RelativeError(got.data(), tensors.y),
                MaxError(*variant, large));
    }
  }
}

// Tensors on the device that are too large for a reference: images that repeat
// after a while, and a few thousand outputs worked out by the definition.
class HugeTensor
    : public ::testing::TestWithParam<std::tuple<const Variant*, Problem>> {};

constexpr int64_t kPeriod = 9973;
// More than 2^31 elements in the output, and in the input.
constexpr Problem kHugeOutput = {190 * kPeriod, 1, 8, 8, 32, 3};
constexpr Problem kHugeInput = {110 * kPeriod, 32, 8, 8, 1, 3};

std::vector<const Variant*> CudaVariants() {
  std::vector<const Variant*> variants;
  for (const Variant* variant : Variants()) {
    if (variant->backend == Backend::kCuda) variants.push_back(variant);
  }
  return variants;
}

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

  Resources resources;
  resources.workers = &TestWorkers();
  auto convolution = variant.Create(problem, resources);
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
