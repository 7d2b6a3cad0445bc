#include "kernels/convolution/checking/parity_testing.h"

#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/accuracy/accuracy.h"
#include "common/status/status.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/mismatch.h"
#include "kernels/convolution/checking/parity_problems.h"
#include "kernels/convolution/checking/poison.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/variants.h"

namespace convlab {
namespace {

absl::StatusOr<cuda::DeviceBuffer> UploadOne(const std::vector<float>& values,
                                             int64_t offset) {
  const int64_t bytes = values.size() * sizeof(float);
  ASSIGN_OR_RETURN(auto buffer, cuda::DeviceBuffer::Allocate(
                                    bytes + offset * sizeof(float)));
  RETURN_IF_ERROR(
      cuda::CopyToDevice(buffer.floats() + offset, values.data(), bytes));
  return buffer;
}

}  // namespace

Workers& TestWorkers() {
  static Workers* const workers = new Workers(Workers::Available() + 1);
  return *workers;
}

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

double MaxError(const Variant& variant, const Problem& problem) {
  return MaxRelativeError(variant.accuracy,
                          problem.kernel_elements() / problem.filters);
}

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

Resources TestResources() {
  Resources resources;
  resources.workers = &TestWorkers();
  return resources;
}

absl::StatusOr<DeviceTensors> Upload(const Tensors& tensors, int64_t offset) {
  DeviceTensors device;
  ASSIGN_OR_RETURN(device.x, UploadOne(tensors.x, offset));
  ASSIGN_OR_RETURN(device.k, UploadOne(tensors.k, offset));
  ASSIGN_OR_RETURN(device.y, cuda::DeviceBuffer::Allocate(
                                 (tensors.y.size() + offset) * sizeof(float)));
  RETURN_IF_ERROR(cuda::FillBytes(device.y.data(), 0xff, device.y.bytes()));
  return device;
}

std::vector<VariantCase> VariantCases(bool (*wanted)(const Variant& variant)) {
  std::vector<VariantCase> cases;
  for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
    for (const Problem& problem : ParityProblems(backend)) {
      for (const Variant* variant : Variants()) {
        if (variant->backend != backend || !wanted(*variant)) continue;
        for (const CpuTarget target : SupportedCpuTargets()) {
          cases.emplace_back(variant, problem, target);
          if (!variant->by_cpu_target) break;
        }
      }
    }
  }
  return cases;
}

std::string VariantCaseName(const ::testing::TestParamInfo<VariantCase>& info) {
  const auto& [variant, problem, target] = info.param;
  return absl::StrCat(
      Name(variant->backend), "_", variant->name, "_",
      variant->by_cpu_target ? absl::StrCat(Name(target), "_") : "",
      absl::StrReplaceAll(ToString(problem), {{" ", "_"}, {"=", ""}}), "_",
      info.index);
}

void VariantTest::SetUp() {
  const auto& [variant, problem, target] = GetParam();
  SkipUnlessSupported(*variant, problem);
  ASSERT_TRUE(ForceCpuTarget(Name(target)).ok());
}

void VariantTest::TearDown() { ASSERT_TRUE(ForceCpuTarget("auto").ok()); }

std::string Mismatches(const Problem& problem, const Tensors& tensors,
                       const std::vector<float>& y, double max_error) {
  // An error of the whole output's root mean square is exceeded by that of
  // single elements.
  constexpr double kLargestError = 10;
  return MismatchText(problem, y, tensors.y, {kLargestError * max_error},
                      kPoisonedWord, {tensors.x, tensors.k, {}, {}});
}

void PrintTo(const Problem& problem, std::ostream* out) {
  *out << ToString(problem);
}

void PrintTo(const Variant* variant, std::ostream* out) {
  *out << variant->name;
}

void PrintTo(CpuTarget target, std::ostream* out) { *out << Name(target); }

std::vector<const Variant*> CudaVariants() {
  std::vector<const Variant*> variants;
  for (const Variant* variant : Variants()) {
    if (variant->backend == Backend::kCuda) variants.push_back(variant);
  }
  return variants;
}

}  // namespace convlab
