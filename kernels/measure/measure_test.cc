// Tests measuring on a GPU: times are those of the work, wrong results are
// found, and ceilings are plausible.
#include <string>
#include <vector>

#include "common/parallel/parallel.h"
#include "common/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/gpu_ceilings.h"
#include "kernels/measure/gpu_tensors.h"
#include "kernels/measure/gpu_timer.h"
#include "kernels/measure/sampled_reference.h"
#include "kernels/measure/sm_clock.h"
#include "kernels/measure/stream_order.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

TEST(MeasureWithoutGpu, SaysWhatIsMissing) {
  const auto device = cuda::FindDevice();
  if (device.ok()) GTEST_SKIP() << "there is a GPU: " << device->name;
  Workers workers(1);
  EXPECT_TRUE(absl::IsUnavailable(GpuTimer::Create().status()));
  EXPECT_TRUE(absl::IsUnavailable(
      GpuTensors::Create({1, 1, 5, 5, 1, 3}, workers).status()));
  EXPECT_TRUE(absl::IsUnavailable(MeasureGpuCeilings().status()));
  EXPECT_TRUE(absl::IsUnavailable(SmClock::Open("0000:00:00.0").status()));
}

class MeasureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto device = cuda::FindDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    device_ = *device;
  }

  cuda::DeviceFacts device_;
  Workers workers_{2};
};

TEST_F(MeasureTest, TimesAreThoseOfTheWork) {
  auto timer = GpuTimer::Create();
  ASSERT_TRUE(timer.ok()) << timer.status();
  const int64_t bytes = int64_t{1} << 28;
  auto buffer = cuda::DeviceBuffer::Allocate(bytes);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  const auto fill = [&](int times) -> GpuTimer::Run {
    return [&, times]() -> absl::Status {
      for (int i = 0; i < times; ++i) {
        const absl::Status status = cuda::FillBytes(buffer->data(), 1, bytes);
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    };
  };
  StoppingRule rule;
  rule.min_samples = 5;
  const auto once = timer->Time(fill(1), rule);
  const auto often = timer->Time(fill(10), rule);
  ASSERT_TRUE(once.ok() && often.ok()) << once.status() << often.status();
  ASSERT_GE(once->samples_ns.size(), 5u);
  const double ratio = static_cast<double>(often->samples_ns[2]) /
                       static_cast<double>(once->samples_ns[2]);
  EXPECT_GT(ratio, 7);
  EXPECT_LT(ratio, 13);
  // An empty operation takes almost no time, although the host needs longer.
  const auto nothing = timer->Time([] { return absl::OkStatus(); }, rule);
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_LT(nothing->samples_ns[2], 20000);
  if (!SmClock::Open(device_.pci_bus_id).ok()) return;
  ASSERT_TRUE(once->sm_clock_mhz.has_value());
  EXPECT_GT(*once->sm_clock_mhz, 100);
  EXPECT_LE(*once->sm_clock_mhz, device_.multiprocessor_clock_khz / 1000 + 50);
}

TEST_F(MeasureTest, ErrorsOfTheRunAreReturned) {
  auto timer = GpuTimer::Create();
  ASSERT_TRUE(timer.ok()) << timer.status();
  const auto times = timer->Time(
      [] { return absl::InternalError("no kernel"); }, StoppingRule());
  EXPECT_EQ(times.status().message(), "no kernel");
}

TEST_F(MeasureTest, VerifiesWhatIsRight) {
  const Problem problem = {9, 2, 20, 20, 3, 5};
  const auto tensors = GpuTensors::Create(problem, workers_);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  std::vector<float> x(problem.input_elements());
  std::vector<float> k(problem.kernel_elements());
  ASSERT_TRUE(cuda::CopyToHost(x.data(), tensors->x(), 4 * x.size()).ok());
  ASSERT_TRUE(cuda::CopyToHost(k.data(), tensors->k(), 4 * k.size()).ok());
  const std::vector<double> exact =
      ReferenceConvolution(problem, x.data(), k.data(), workers_);
  const std::vector<float> y(exact.begin(), exact.end());
  const auto error = tensors->Verify(
      [&] { return cuda::CopyToDevice(tensors->y(), y.data(), 4 * y.size()); });
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_LE(error->relative, 1e-7);
  EXPECT_GT(error->relative, 0);
  EXPECT_LE(error->worst.factor, 1);
  EXPECT_TRUE(tensors->CheckUse().ok());
}

TEST_F(MeasureTest, FindsWhatIsWrong) {
  const Problem problem = {9, 2, 20, 20, 3, 5};
  for (const ElementType type : {ElementType::kFloat, ElementType::kHalf}) {
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
      const auto tensors = GpuTensors::Create(problem, workers_, layout, type);
      ASSERT_TRUE(tensors.ok()) << tensors.status();
      // Nothing is written, although y holds the right result.
      const auto nothing = tensors->Verify([] { return absl::OkStatus(); });
      EXPECT_THAT(std::string(nothing.status().message()),
                  HasSubstr("not written completely"));
      // Zeros are an error of 1.
      const auto zeros = tensors->Verify([&] {
        return cuda::FillBytes(
            tensors->y(), 0,
            problem.output_elements() * (type == ElementType::kFloat ? 4 : 2));
      });
      ASSERT_TRUE(zeros.ok()) << zeros.status();
      EXPECT_NEAR(zeros->relative, 1, 1e-6);
      EXPECT_FALSE(zeros->worst.ok());
      // One weight is changed.
      ASSERT_TRUE(tensors->CheckUse().ok());
      ASSERT_TRUE(
          cuda::FillBytes(const_cast<void*>(tensors->k()), 0xff, 2).ok());
      EXPECT_FALSE(tensors->CheckUse().ok());
    }
  }
}

// Computes y on the host, for what x and k hold now.
absl::Status ComputeOnHost(const Problem& problem, const GpuTensors& tensors,
                           Workers& workers, std::vector<float>* y) {
  std::vector<float> x(problem.input_elements());
  std::vector<float> k(problem.kernel_elements());
  RETURN_IF_ERROR(cuda::CopyToHost(x.data(), tensors.x(), 4 * x.size()));
  RETURN_IF_ERROR(cuda::CopyToHost(k.data(), tensors.k(), 4 * k.size()));
  const std::vector<double> exact =
      ReferenceConvolution(problem, x.data(), k.data(), workers);
  y->assign(exact.begin(), exact.end());
  RETURN_IF_ERROR(cuda::CopyToDevice(tensors.y(), y->data(), 4 * y->size()));
  // The device draws the outputs that the host draws.
  ASSIGN_OR_RETURN(const MeasuredError there, tensors.DrawnError(3));
  const MeasuredError here =
      DrawnError(problem, x.data(), k.data(), y->data(), 3, workers);
  EXPECT_NEAR(there.relative, here.relative, 1e-3 * here.relative);
  EXPECT_NEAR(there.worst.factor, here.worst.factor, 1e-3);
  EXPECT_EQ(there.worst.allowed, here.worst.allowed);
  return absl::OkStatus();
}

TEST_F(MeasureTest, RenewedInputsHaveNewOutputs) {
  const Problem problem = {9, 2, 20, 20, 3, 5};
  auto tensors = GpuTensors::Create(problem, workers_);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  std::vector<float> first, y;
  for (const bool ordinary : {true, false}) {
    SCOPED_TRACE(ordinary);
    ASSERT_TRUE(tensors->Restore().ok());
    ASSERT_TRUE(ComputeOnHost(problem, *tensors, workers_, &first).ok());
    EXPECT_LE(tensors->WholeError()->relative, 1e-7);
    EXPECT_LE(tensors->WholeError()->worst.factor, 1);
    ASSERT_TRUE(tensors->Renew(ordinary, 5).ok());
    EXPECT_TRUE(tensors->CheckUse().ok());
    EXPECT_GT(tensors->WholeError()->relative, 0.1);
    EXPECT_GT(tensors->DrawnError(1)->relative, 0.1);
    ASSERT_TRUE(ComputeOnHost(problem, *tensors, workers_, &y).ok());
    EXPECT_NE(y, first);
    EXPECT_LE(tensors->WholeError()->relative, 1e-7);
    // One element is enough for the whole output, and NaN never passes.
    ASSERT_TRUE(
        cuda::FillBytes(static_cast<float*>(tensors->y()) + 77, 0, 4).ok());
    EXPECT_FALSE(tensors->WholeError()->worst.ok());
    ASSERT_TRUE(
        cuda::FillBytes(static_cast<float*>(tensors->y()) + 77, 0xff, 4).ok());
    EXPECT_FALSE(tensors->WholeError()->worst.ok());
    EXPECT_FALSE(CheckMeasured(*tensors->WholeError(), AccuracyClass::kBf16,
                               /*ordinary=*/true)
                     .ok());
  }
}

TEST_F(MeasureTest, FindsWhatIsWrittenBesideATensor) {
  const Problem problem = {9, 2, 20, 20, 3, 5};
  auto tensors = GpuTensors::Create(problem, workers_);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_TRUE(tensors->CheckUse().ok());
  char* const y = static_cast<char*>(tensors->y());
  ASSERT_TRUE(cuda::FillBytes(y + tensors->y_bytes() + 8, 0, 4).ok());
  EXPECT_EQ(tensors->CheckUse().message(),
            "wrote 12 bytes behind y in device memory");
  ASSERT_TRUE(tensors->Restore().ok());
  EXPECT_TRUE(tensors->CheckUse().ok());
  ASSERT_TRUE(cuda::FillBytes(y - 8, 0, 4).ok());
  EXPECT_EQ(tensors->CheckUse().message(),
            "wrote 8 bytes before y in device memory");
}

TEST_F(MeasureTest, FindsWorkInAStreamThatWaitsForNoOther) {
  const int64_t bytes = int64_t{1} << 26;
  auto from = cuda::DeviceBuffer::Allocate(bytes);
  auto to = cuda::DeviceBuffer::Allocate(bytes);
  auto aside = cuda::DeviceStream::Create();
  ASSERT_TRUE(from.ok() && to.ok() && aside.ok());
  ASSERT_TRUE(cuda::FillBytes(from->data(), 1, bytes).ok());
  const auto copy = [&](CUstream_st* stream, int times) -> GpuTimer::Run {
    return [&, stream, times]() -> absl::Status {
      for (int i = 0; i < times; ++i) {
        RETURN_IF_ERROR(
            cuda::QueueCopy(to->data(), from->data(), bytes, stream));
      }
      return absl::OkStatus();
    };
  };
  EXPECT_TRUE(CheckStreamOrder(copy(nullptr, 1), to->data(), bytes).ok());
  EXPECT_THAT(
      std::string(
          CheckStreamOrder(copy(aside->get(), 1), to->data(), bytes).message()),
      HasSubstr("while the stream was held"));
  auto timer = GpuTimer::Create();
  ASSERT_TRUE(timer.ok()) << timer.status();
  StoppingRule rule;
  rule.min_samples = rule.max_samples = 5;
  EXPECT_TRUE(timer->Time(copy(nullptr, 100), rule).ok());
  EXPECT_THAT(
      std::string(
          timer->Time(copy(aside->get(), 100), rule).status().message()),
      HasSubstr("the GPU still works"));
}

TEST_F(MeasureTest, CallsWhatIsAroundEachSample) {
  auto timer = GpuTimer::Create();
  ASSERT_TRUE(timer.ok()) << timer.status();
  StoppingRule rule;
  rule.min_samples = rule.max_samples = 4;
  std::string calls;
  GpuTimer::Around around;
  around.before = [&] { return calls += "b", absl::OkStatus(); };
  around.after = [&] { return calls += "a", absl::OkStatus(); };
  const auto run = [&] { return calls += "r", absl::OkStatus(); };
  ASSERT_TRUE(timer->Time(run, rule, around).ok());
  EXPECT_EQ(calls, "rbrabrabrabra");
  around.after = [] { return absl::DataLossError("wrong"); };
  EXPECT_EQ(timer->Time(run, rule, around).status().message(), "wrong");
}

TEST_F(MeasureTest, CeilingsAreThoseOfAGpu) {
  const auto ceilings = MeasureGpuCeilings();
  ASSERT_TRUE(ceilings.ok()) << ceilings.status();
  // Not above the rate of clock and width, and not far below it.
  const double peak =
      2e-6 * device_.memory_clock_khz * device_.memory_bus_bits / 8;
  EXPECT_GT(*ceilings->fill_gbs, 0.5 * peak);
  EXPECT_GT(*ceilings->copy_gbs, 0.5 * peak);
  if (peak > 0) {
    EXPECT_LT(*ceilings->fill_gbs, 1.02 * peak);
    EXPECT_LT(*ceilings->copy_gbs, 1.02 * peak);
  }
  // A multiprocessor has 128 lanes, on some GPUs 64.
  const double lanes =
      2e-9 * device_.multiprocessors * device_.multiprocessor_clock_khz;
  EXPECT_GT(*ceilings->fp32_tflops, 0.5 * 64 * lanes);
  EXPECT_LT(*ceilings->fp32_tflops, 1.02 * 128 * lanes);
  if (device_.compute_capability < 80) {
    EXPECT_EQ(ceilings->fp16_tflops, std::nullopt);
    return;
  }
  EXPECT_GT(*ceilings->fp16_tflops, *ceilings->tf32_tflops);
  EXPECT_GT(*ceilings->tf32_tflops, *ceilings->fp32_tflops);
  if (device_.name.find("H200") != std::string::npos) {
    EXPECT_GT(*ceilings->fp16_tflops, 550);
    EXPECT_LT(*ceilings->fp16_tflops, 1080);
  }
}

}  // namespace
}  // namespace convlab
