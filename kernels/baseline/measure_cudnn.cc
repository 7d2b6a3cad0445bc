#include <cuda_runtime_api.h>

#include <algorithm>
#include <random>
#include <utility>

#include "Eigen/Core"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "kernels/baseline/convolution.h"
#include "kernels/baseline/cudnn_library.h"
#include "kernels/convolution/reference.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/library.h"

namespace convlab {
namespace {

using cuda::DeviceBuffer;
using cuda::Event;
using cuda::Forward;

constexpr int64_t kWorkspaceLimit = int64_t{4} << 30;

// Values repeat from here on, which no algorithm can know of. Odd, so that
// images differ.
constexpr int64_t kPeriod = (int64_t{1} << 22) + 1;

// Where element (c, h, w) of an image of C x H x W lies in it.
int64_t Offset(cudnnTensorFormat_t format, int64_t C, int64_t H, int64_t W,
               int64_t c, int64_t h, int64_t w) {
  return format == CUDNN_TENSOR_NCHW ? (c * H + h) * W + w
                                     : (h * W + w) * C + c;
}

absl::Status CheckCuda(cudaError_t code, const char* call) {
  return cuda::ToStatus(cuda::Check(code, call));
}

// Float32 values as they are, or in half precision.
template <typename T>
std::vector<T> Convert(const std::vector<float>& values) {
  std::vector<T> converted(values.size());
  std::transform(values.begin(), values.end(), converted.begin(),
                 [](float value) { return static_cast<T>(value); });
  return converted;
}

// Fills `elements` of device memory with `values` again and again.
template <typename T>
absl::StatusOr<DeviceBuffer> UploadRepeated(const std::vector<float>& values,
                                            int64_t elements) {
  ASSIGN_OR_RETURN(DeviceBuffer buffer,
                   DeviceBuffer::Allocate(elements * sizeof(T)));
  const std::vector<T> converted = Convert<T>(values);
  int64_t done = std::min<int64_t>(elements, converted.size());
  T* const data = static_cast<T*>(buffer.data());
  RETURN_IF_ERROR(cuda::CopyToDevice(data, converted.data(), done * sizeof(T)));
  while (done < elements) {
    const int64_t count = std::min(done, elements - done);
    RETURN_IF_ERROR(CheckCuda(cudaMemcpy(data + done, data, count * sizeof(T),
                                         cudaMemcpyDeviceToDevice),
                              "cudaMemcpy on the device"));
    done += count;
  }
  return buffer;
}

// One layout and type of the tensors of a problem, with their right results.
template <typename T>
class Tensors {
 public:
  Tensors(const Problem& problem, cudnnTensorFormat_t format)
      : problem_(problem), format_(format) {}

  absl::Status Create(const std::vector<float>& values,
                      const std::vector<float>& k, Workers& workers) {
    const Problem& p = problem_;
    ASSIGN_OR_RETURN(x_, UploadRepeated<T>(values, p.input_elements()));
    const int64_t K = p.kernel_size, filter = p.channels * K * K;
    std::vector<float> placed(k.size());
    for (int64_t m = 0; m < p.filters; ++m) {
      Place(p.channels, K, K, [&](int64_t plain, int64_t offset) {
        placed[m * filter + offset] = k[m * filter + plain];
      });
    }
    ASSIGN_OR_RETURN(k_, UploadRepeated<T>(placed, p.kernel_elements()));
    ASSIGN_OR_RETURN(y_,
                     DeviceBuffer::Allocate(p.output_elements() * sizeof(T)));
    const int64_t image = p.input_elements() / p.batch;
    std::vector<float> x(2 * image);
    for (int i = 0; i < 2; ++i) {
      const int64_t first = i * (p.batch - 1) * image;
      Place(p.channels, p.height, p.width, [&](int64_t plain, int64_t offset) {
        x[i * image + plain] = values[(first + offset) % values.size()];
      });
    }
    Problem two = p;
    two.batch = 2;
    reference_ = ReferenceConvolution(two, x.data(), k.data(), workers);
    return absl::OkStatus();
  }

  absl::Status Poison() {
    return cuda::FillBytes(y_.data(), 0xff, y_.bytes());  // NaN in both types
  }

  // Error of the first and the last image of y, after a run.
  absl::StatusOr<double> Error() const {
    const Problem& p = problem_;
    const int64_t image = p.output_elements() / p.batch;
    std::vector<float> y(2 * image);
    std::vector<T> read(image);
    for (int i = 0; i < 2; ++i) {
      RETURN_IF_ERROR(cuda::CopyToHost(
          read.data(),
          static_cast<const T*>(y_.data()) + i * (p.batch - 1) * image,
          image * sizeof(T)));
      Place(p.filters, p.output_height(), p.output_width(),
            [&](int64_t plain, int64_t offset) {
              y[i * image + plain] = static_cast<float>(read[offset]);
            });
    }
    return RelativeError(y.data(), reference_);
  }

  const void* x() const { return x_.data(); }
  const void* k() const { return k_.data(); }
  void* y() const { return y_.data(); }

 private:
  // Calls visit(index in CHW, index in this layout) for an image's elements.
  template <typename Visit>
  void Place(int64_t C, int64_t H, int64_t W, Visit visit) const {
    int64_t plain = 0;
    for (int64_t c = 0; c < C; ++c) {
      for (int64_t h = 0; h < H; ++h) {
        for (int64_t w = 0; w < W; ++w) {
          visit(plain++, Offset(format_, C, H, W, c, h, w));
        }
      }
    }
  }

  const Problem problem_;
  const cudnnTensorFormat_t format_;
  DeviceBuffer x_, k_, y_;
  std::vector<double> reference_;  // of two images
};

// Times runs that begin with nothing of the tensors in the L2.
class Timer {
 public:
  static absl::StatusOr<Timer> Create() {
    ASSIGN_OR_RETURN(const cuda::DeviceFacts device, cuda::FindDevice());
    ASSIGN_OR_RETURN(Event start, Event::Create());
    ASSIGN_OR_RETURN(Event stop, Event::Create());
    ASSIGN_OR_RETURN(DeviceBuffer flush,
                     DeviceBuffer::Allocate(3 * device.l2_bytes));
    return Timer(std::move(start), std::move(stop), std::move(flush));
  }

  template <typename Run>
  absl::StatusOr<int64_t> Time(Run run) {
    RETURN_IF_ERROR(cuda::FillBytes(flush_.data(), 0, flush_.bytes()));
    RETURN_IF_ERROR(start_.Record());
    RETURN_IF_ERROR(run());
    RETURN_IF_ERROR(stop_.Record());
    return stop_.Since(start_);
  }

 private:
  Timer(Event start, Event stop, DeviceBuffer flush)
      : start_(std::move(start)),
        stop_(std::move(stop)),
        flush_(std::move(flush)) {}

  Event start_, stop_;
  DeviceBuffer flush_;
};

int64_t Median(std::vector<int64_t> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

// Checks and times one plan. `best_ns` is the best median so far, 0 for none.
template <typename T>
absl::Status MeasurePlan(const Forward& forward,
                         cudnnConvolutionFwdAlgo_t algorithm,
                         AccuracyClass accuracy, int samples, int64_t best_ns,
                         Tensors<T>& tensors, Timer& timer, CudnnPlan& plan) {
  ASSIGN_OR_RETURN(plan.workspace_bytes,
                   cuda::WorkspaceBytes(forward, algorithm));
  if (plan.workspace_bytes > kWorkspaceLimit) {
    return absl::UnimplementedError(
        absl::StrCat("needs a workspace of ", plan.workspace_bytes, " bytes"));
  }
  ASSIGN_OR_RETURN(const DeviceBuffer workspace,
                   DeviceBuffer::Allocate(plan.workspace_bytes));
  const auto run = [&] {
    return cuda::RunForward(forward, algorithm, tensors.x(), tensors.k(),
                            tensors.y(), workspace);
  };
  // The check is the warm-up too.
  RETURN_IF_ERROR(tensors.Poison());
  RETURN_IF_ERROR(run());
  ASSIGN_OR_RETURN(plan.relative_error, tensors.Error());
  if (!(plan.relative_error <= MaxRelativeError(accuracy))) {
    return absl::UnimplementedError(
        absl::StrFormat("its relative error %.1e exceeds the class %s",
                        plan.relative_error, Name(accuracy)));
  }
  for (int i = 0; i < samples; ++i) {
    ASSIGN_OR_RETURN(const int64_t ns, timer.Time(run));
    plan.samples_ns.push_back(ns);
    if (best_ns > 0 && ns > 3 * best_ns) break;
  }
  plan.median_ns = Median(plan.samples_ns);
  return absl::OkStatus();
}

std::vector<float> RandomFloats(int64_t count, int seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

template <typename T>
absl::Status MeasurePlans(const Problem& problem, AccuracyClass accuracy,
                          cudnnDataType_t type, cudnnMathType_t math,
                          Workers& workers, int samples,
                          std::vector<CudnnPlan>& plans) {
  ASSIGN_OR_RETURN(Timer timer, Timer::Create());
  const std::vector<float> values =
      RandomFloats(std::min(kPeriod, problem.input_elements()), 1);
  const std::vector<float> k = RandomFloats(problem.kernel_elements(), 2);
  int64_t best_ns = 0;
  for (const cudnnTensorFormat_t format :
       {CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC}) {
    Tensors<T> tensors(problem, format);
    RETURN_IF_ERROR(tensors.Create(values, k, workers));
    ASSIGN_OR_RETURN(const Forward forward,
                     cuda::DescribeForward(problem, format, type, math));
    for (int i = 0; i < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++i) {
      const auto algorithm = static_cast<cudnnConvolutionFwdAlgo_t>(i);
      CudnnPlan plan;
      plan.algorithm = cuda::Name(algorithm);
      plan.layout = format == CUDNN_TENSOR_NCHW ? "NCHW" : "NHWC";
      const absl::Status status = MeasurePlan(
          forward, algorithm, accuracy, samples, best_ns, tensors, timer, plan);
      if (status.ok()) {
        best_ns =
            best_ns == 0 ? plan.median_ns : std::min(best_ns, plan.median_ns);
      } else {
        plan.rejected = std::string(status.message());
        // A failed launch would fail all that follow: that is no rejection.
        RETURN_IF_ERROR(cuda::Synchronize());
      }
      plans.push_back(std::move(plan));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CudnnMeasurement> MeasureCudnn(const Problem& problem,
                                              AccuracyClass accuracy,
                                              Workers& workers, int samples) {
  RETURN_IF_ERROR(CheckProblem(problem));
  if (samples < 1 || accuracy == AccuracyClass::kBf16) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cuDNN's measurement: ", samples, " samples in class ", Name(accuracy),
        "; expected 1 or more, and fp32, tf32 or "
        "fp16"));
  }
  RETURN_IF_ERROR(cuda::OpenCudnn().status());
  CudnnMeasurement measurement;
  for (const cuda::Library* library : cuda::OpenedLibraries()) {
    if (library->name == "cuDNN")
      measurement.version = cuda::ToString(library->version);
  }
  RETURN_IF_ERROR(
      accuracy == AccuracyClass::kFp16
          ? MeasurePlans<Eigen::half>(problem, accuracy, CUDNN_DATA_HALF,
                                      CUDNN_TENSOR_OP_MATH, workers, samples,
                                      measurement.plans)
          : MeasurePlans<float>(problem, accuracy, CUDNN_DATA_FLOAT,
                                accuracy == AccuracyClass::kFp32
                                    ? CUDNN_FMA_MATH
                                    : CUDNN_DEFAULT_MATH,
                                workers, samples, measurement.plans));
  std::stable_sort(measurement.plans.begin(), measurement.plans.end(),
                   [](const CudnnPlan& a, const CudnnPlan& b) {
                     return std::make_pair(!a.rejected.empty(), a.median_ns) <
                            std::make_pair(!b.rejected.empty(), b.median_ns);
                   });
  return measurement;
}

}  // namespace convlab
