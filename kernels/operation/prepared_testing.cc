#include "kernels/operation/prepared_testing.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

void RunOnDevice(PreparedOperation& prepared, const Operation& o,
                 const std::vector<float>& x, const std::vector<float>& k,
                 const std::vector<float>& bias, int offset,
                 std::vector<float>& y) {
  std::vector<cuda::DeviceBuffer> buffers;
  const auto upload = [&](const std::vector<float>& values) -> float* {
    const int64_t bytes = static_cast<int64_t>(values.size() * sizeof(float));
    auto buffer = cuda::DeviceBuffer::Allocate(bytes + 16);
    if (!buffer.ok()) return nullptr;
    float* const at = buffer->floats() + offset;
    if (!cuda::CopyToDevice(at, values.data(), bytes).ok()) return nullptr;
    buffers.push_back(*std::move(buffer));
    return at;
  };
  const float* const dx = upload(x);
  const float* const dk = upload(k);
  const float* const dbias = o.bias ? upload(bias) : nullptr;
  float* const dy = upload(y);
  // The workspace is full of NaN, and nothing behind its end is written.
  const int64_t bytes = prepared.workspace_bytes();
  auto workspace = cuda::DeviceBuffer::Allocate(bytes + 256);
  ASSERT_TRUE(dx != nullptr && dk != nullptr && dy != nullptr &&
              workspace.ok());
  ASSERT_TRUE(cuda::FillBytes(workspace->data(), 0xff, bytes + 256).ok());
  const absl::Status ran =
      prepared.Run({dx, dk, dbias, dy, workspace->data()}, nullptr);
  ASSERT_TRUE(ran.ok()) << ran;
  ASSERT_TRUE(cuda::Synchronize().ok());
  const int64_t y_bytes = static_cast<int64_t>(y.size() * sizeof(float));
  ASSERT_TRUE(cuda::CopyToHost(y.data(), dy, y_bytes).ok());
  std::vector<unsigned char> behind(256);
  ASSERT_TRUE(cuda::CopyToHost(behind.data(),
                               static_cast<char*>(workspace->data()) + bytes,
                               256)
                  .ok());
  EXPECT_EQ(behind, std::vector<unsigned char>(256, 0xff));

  // Prepared filters give the same, and the others are not needed any more.
  auto filters = cuda::DeviceBuffer::Allocate(prepared.filter_bytes());
  ASSERT_TRUE(filters.ok()) << filters.status();
  ASSERT_TRUE(prepared.PrepareFilters(dk, filters->data(), nullptr).ok());
  ASSERT_TRUE(cuda::Synchronize().ok());
  ASSERT_TRUE(cuda::FillBytes(const_cast<float*>(dk), 0xff,
                              static_cast<int64_t>(k.size() * sizeof(float)))
                  .ok());
  ASSERT_TRUE(cuda::FillBytes(dy, 0xff, y_bytes).ok());
  const absl::Status again = prepared.RunPrepared(
      {dx, filters->data(), dbias, dy, workspace->data()}, nullptr);
  ASSERT_TRUE(again.ok()) << again;
  ASSERT_TRUE(cuda::Synchronize().ok());
  std::vector<float> same(y.size());
  ASSERT_TRUE(cuda::CopyToHost(same.data(), dy, y_bytes).ok());
  // Halves fill the beginning.
  EXPECT_EQ(std::memcmp(same.data(), y.data(),
                        o.element_bytes() * o.output_elements()),
            0);
}

}  // namespace

Workers& TestWorkers() {
  static Workers workers(2);
  return workers;
}

Operation MakeOperation(int64_t batch, int64_t channels, int64_t height,
                        int64_t width, int64_t filters, int64_t kernel_height,
                        int64_t kernel_width) {
  Operation o;
  o.batch = batch, o.channels = channels, o.height = height, o.width = width;
  o.filters = filters;
  o.kernel_height = kernel_height, o.kernel_width = kernel_width;
  return o;
}

const KernelLimits& LimitsOfKernel(absl::string_view kernel) {
  constexpr int kAny = std::numeric_limits<int>::max();
  const auto all = [](int64_t, int64_t) { return true; };
  // What tensor_wgmma is compiled for. Products of warpgroups are in code for
  // capability 9.0 alone.
  const auto odd = [](int64_t size, int64_t) {
    return size == 3 || size == 5 || size == 7 || size == 9;
  };
  static const KernelLimits kLimits[] = {
      {"direct_tiled", 0, kAny, all},
      {"few_images", 0, kAny, all},
      {"im2col_shared", 0, kAny, all},
      {"tensor_split", 80, kAny,
       [](int64_t size, int64_t) { return size <= 11; }},
      {"tensor_strips", 80, kAny,
       [](int64_t size, int64_t channels) {
         return size >= 3 && size <= 11 &&
                channels <= (size <= 4   ? 9
                             : size <= 6 ? 6
                             : size <= 7 ? 4
                             : size <= 9 ? 2
                                         : 1);
       }},
      {"tensor_wgmma", 90, 90, odd},
      {"wgmma_fp16", 90, 90, odd},
      {"wgmma_strips", 90, 90,
       [](int64_t size, int64_t channels) {
         return size >= 2 && size <= 9 &&
                channels <= (size <= 3   ? 4
                             : size <= 5 ? 3
                             : size <= 7 ? 2
                                         : 1);
       }},
  };
  for (const KernelLimits& limits : kLimits) {
    if (kernel == limits.kernel) return limits;
  }
  ADD_FAILURE() << "no limits of " << kernel;
  return kLimits[0];
}

bool KernelTakes(absl::string_view kernel, const Operation& o) {
  if (kernel.empty() || kernel == kGeneralKernel) return true;
  return o.stride_y == 1 && o.stride_x == 1 &&
         o.kernel_height == o.kernel_width &&
         LimitsOfKernel(kernel).accepts(o.kernel_height, o.channels);
}

Sums DefinitionOf(const Operation& o, const std::vector<float>& x,
                  const std::vector<float>& k) {
  Sums sums;
  sums.reference.resize(o.sums_elements());
  sums.plain.resize(o.sums_elements());
  const int64_t width = o.sums_width(), height = o.sums_height();
  TestWorkers().For(
      o.batch * o.filters * height, 8, [&](int, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t i = row % height, m = row / height % o.filters;
          const int64_t b = row / height / o.filters;
          for (int64_t j = 0; j < width; ++j) {
            OutputReference out = {0, 0, o.taps()};
            float plain = 0;
            const float* weight = k.data() + m * o.taps();
            for (int64_t c = 0; c < o.channels; ++c) {
              for (int64_t p = 0; p < o.kernel_height; ++p) {
                for (int64_t q = 0; q < o.kernel_width; ++q, ++weight) {
                  const int64_t h = i * o.stride_y + p - o.top;
                  const int64_t w = j * o.stride_x + q - o.left;
                  const bool inside =
                      h >= 0 && h < o.height && w >= 0 && w < o.width;
                  const float in =
                      inside
                          ? x[((b * o.channels + c) * o.height + h) * o.width +
                              w]
                          : 0;
                  out.y64 += double{in} * *weight;
                  out.magnitude += std::abs(double{in} * *weight);
                  plain += in * *weight;
                }
              }
            }
            sums.reference[row * width + j] = out;
            sums.plain[row * width + j] = plain;
          }
        }
      });
  return sums;
}

std::vector<double> Finished(const Operation& o, const Sums& sums,
                             const float* bias) {
  std::vector<double> y(sums.reference.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = sums.reference[i].y64;
  const Problem problem = {o.batch,        1,         o.sums_height(),
                           o.sums_width(), o.filters, 1};
  return ReferenceEpilogue(problem, {bias, o.activation, o.pool}, std::move(y),
                           TestWorkers());
}

std::vector<float> Integers(int64_t count, int most, int seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value =
        static_cast<float>(static_cast<int>(random() % (2 * most + 1)) - most);
  }
  return values;
}

std::vector<float> Uniform(int64_t count, int seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

void Prepared::SetUp() {
  target_.backend = std::get<0>(GetParam());
  target_.kernel = std::get<1>(GetParam());
  target_.resources.workers = &TestWorkers();
  if (target_.backend == Backend::kCpu) return;
  const auto device = cuda::FindDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  if (target_.kernel.empty() || target_.kernel == kGeneralKernel) return;
  const KernelLimits& limits = LimitsOfKernel(target_.kernel);
  if (device->compute_capability < limits.least_capability ||
      device->compute_capability > limits.most_capability) {
    GTEST_SKIP() << target_.kernel << " does not run on the " << device->name;
  }
}

bool Prepared::Takes(const Operation& o) {
  const bool takes = KernelTakes(target_.kernel, o);
  const absl::Status status = PrepareOperation(o, target_).status();
  EXPECT_EQ(status.code(),
            takes ? absl::StatusCode::kOk : absl::StatusCode::kUnimplemented)
      << ToString(o) << ": " << status;
  return takes;
}

std::vector<float> Prepared::Run(const Operation& o,
                                 const std::vector<float>& x,
                                 const std::vector<float>& k,
                                 const std::vector<float>& bias, int offset) {
  std::vector<float> y(o.output_elements(),
                       std::numeric_limits<float>::quiet_NaN());
  auto prepared = PrepareOperation(o, target_);
  EXPECT_TRUE(prepared.ok()) << prepared.status();
  if (!prepared.ok()) return y;
  if (!target_.kernel.empty()) {
    EXPECT_EQ((*prepared)->kernel(), target_.kernel);
  }
  const float* const no_bias = nullptr;
  if (target_.backend == Backend::kCpu) {
    EXPECT_EQ((*prepared)->workspace_bytes(), 0);
    const absl::Status ran = (*prepared)->Run(
        {x.data(), k.data(), o.bias ? bias.data() : no_bias, y.data(), nullptr},
        nullptr);
    EXPECT_TRUE(ran.ok()) << ran;
    return y;
  }
  RunOnDevice(**prepared, o, x, k, bias, offset, y);
  return y;
}

std::string NameOfTarget(
    const ::testing::TestParamInfo<std::tuple<Backend, const char*>>& test) {
  const std::string kernel = std::get<1>(test.param);
  return absl::StrCat(Name(std::get<0>(test.param)), "_",
                      kernel.empty() ? "fastest" : kernel);
}

}  // namespace convlab
