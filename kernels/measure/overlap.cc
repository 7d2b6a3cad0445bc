#include "kernels/measure/overlap.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/accuracy/accuracy.h"
#include "common/parallel/parallel.h"
#include "common/status/status.h"
#include "kernels/convolution/checking/reference.h"
#include "kernels/convolution/convolution.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/error.h"
#include "kernels/measure/op_time.h"

namespace convlab {
namespace {

using cuda::DeviceBuffer;
using cuda::PinnedBuffer;

class Slices : public SlicedConvolution {
 public:
  Slices(const Problem& problem, int64_t slice_images)
      : problem_(problem), slice_(problem) {
    slice_.batch = slice_images;
  }

  absl::Status Prepare(const Variant& variant, int streams) {
    ASSIGN_OR_RETURN(
        k_, DeviceBuffer::Allocate(sizeof(float) * problem_.kernel_elements()));
    Problem last = slice_;
    if (problem_.batch % slice_.batch != 0) {
      last.batch = problem_.batch % slice_.batch;
    }
    for (int i = 0; i < streams; ++i) {
      ASSIGN_OR_RETURN(auto stream, cuda::DeviceStream::Create());
      auto queue = std::make_unique<Queue>(std::move(stream));
      ASSIGN_OR_RETURN(queue->whole, variant.Create(slice_, Resources()));
      ASSIGN_OR_RETURN(queue->last, variant.Create(last, Resources()));
      ASSIGN_OR_RETURN(queue->x, DeviceBuffer::Allocate(
                                     sizeof(float) * slice_.input_elements()));
      ASSIGN_OR_RETURN(queue->y, DeviceBuffer::Allocate(
                                     sizeof(float) * slice_.output_elements()));
      queues_.push_back(std::move(queue));
    }
    return absl::OkStatus();
  }

  absl::Status Run(const float* x, const float* k, float* y) override {
    RETURN_IF_ERROR(cuda::CopyToDevice(k_.data(), k, k_.bytes()));
    const int64_t x_image = problem_.input_elements() / problem_.batch;
    const int64_t y_image = problem_.output_elements() / problem_.batch;
    int64_t turn = 0;
    for (int64_t b = 0; b < problem_.batch; b += slice_.batch) {
      Queue& queue = *queues_[turn++ % queues_.size()];
      Problem slice = slice_;
      slice.batch = std::min(slice_.batch, problem_.batch - b);
      RETURN_IF_ERROR(Enqueue(queue, slice, x + b * x_image, y + b * y_image));
    }
    return cuda::Synchronize();
  }

 private:
  // A stream, with the device memory of the slice that is in it. The next slice
  // in the same stream comes after this one, so it may use the same memory.
  struct Queue {
    explicit Queue(cuda::DeviceStream its_stream)
        : stream(std::move(its_stream)) {}

    cuda::DeviceStream stream;
    DeviceBuffer x, y;
    // Of a slice, and of what the last one holds.
    std::unique_ptr<Convolution> whole, last;
  };

  absl::Status Enqueue(Queue& queue, const Problem& slice, const float* x,
                       float* y) {
    cudaStream_t stream = queue.stream.get();
    RETURN_IF_ERROR(ToStatus(
        cuda::Check(cudaMemcpyAsync(queue.x.data(), x,
                                    sizeof(float) * slice.input_elements(),
                                    cudaMemcpyHostToDevice, stream),
                    "cudaMemcpyAsync to the device")));
    Convolution& convolution =
        slice.batch == slice_.batch ? *queue.whole : *queue.last;
    RETURN_IF_ERROR(convolution.Run(queue.x.floats(), k_.floats(),
                                    queue.y.floats(), stream));
    return ToStatus(
        cuda::Check(cudaMemcpyAsync(y, queue.y.data(),
                                    sizeof(float) * slice.output_elements(),
                                    cudaMemcpyDeviceToHost, stream),
                    "cudaMemcpyAsync to the host"));
  }

  const Problem problem_;
  Problem slice_;  // of most slices
  DeviceBuffer k_;
  std::vector<std::unique_ptr<Queue>> queues_;
};

void FillRandom(int64_t count, float* values) {
  std::minstd_rand generator(1);
  std::uniform_real_distribution<float> distribution(-1, 1);
  for (int64_t i = 0; i < count; ++i) values[i] = distribution(generator);
}

absl::StatusOr<PinnedBuffer> RandomFloats(int64_t count) {
  ASSIGN_OR_RETURN(PinnedBuffer buffer,
                   PinnedBuffer::Allocate(sizeof(float) * count));
  FillRandom(count, static_cast<float*>(buffer.data()));
  return buffer;
}

// DataLoss unless image `b` of y is the convolution in the variant's class.
absl::Status CheckImage(const Variant& variant, const Problem& problem,
                        int64_t b, const float* x, const float* k,
                        const float* y) {
  Problem image = problem;
  image.batch = 1;
  Workers workers(1);
  const double error = RelativeError(
      y + b * image.output_elements(),
      ReferenceConvolution(image, x + b * image.input_elements(), k, workers));
  return Annotate(CheckError(error, variant.accuracy),
                  absl::StrCat(variant.name, " in streams on ",
                               ToString(problem), ", image ", b));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlicedConvolution>> SlicedConvolution::Create(
    const Variant& variant, const Problem& problem, int64_t slices,
    int streams) {
  RETURN_IF_ERROR(CheckProblem(problem));
  if (slices < 1 || streams < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(slices, " slices in ", streams,
                     " streams: expected at least one of each"));
  }
  RETURN_IF_ERROR(cuda::FindDevice().status());
  slices = std::min(slices, problem.batch);
  auto made =
      std::make_unique<Slices>(problem, (problem.batch + slices - 1) / slices);
  RETURN_IF_ERROR(made->Prepare(variant, streams));
  return made;
}

absl::StatusOr<OverlapTimes> MeasureStreams(const Variant& variant,
                                            const Problem& problem,
                                            int64_t slices, int repetitions) {
  ASSIGN_OR_RETURN(const auto serial,
                   SlicedConvolution::Create(variant, problem, slices, 1));
  ASSIGN_OR_RETURN(const auto overlapped,
                   SlicedConvolution::Create(variant, problem, slices, 3));
  ASSIGN_OR_RETURN(const PinnedBuffer x,
                   RandomFloats(problem.input_elements()));
  ASSIGN_OR_RETURN(const PinnedBuffer k,
                   RandomFloats(problem.kernel_elements()));
  const int64_t y_bytes = sizeof(float) * problem.output_elements();
  ASSIGN_OR_RETURN(const PinnedBuffer serial_y,
                   PinnedBuffer::Allocate(y_bytes));
  ASSIGN_OR_RETURN(const PinnedBuffer overlapped_y,
                   PinnedBuffer::Allocate(y_bytes));
  // Two values that no convolution of numbers in [-1, 1] gives.
  std::memset(serial_y.data(), 0xff, y_bytes);
  std::memset(overlapped_y.data(), 0xfe, y_bytes);

  OverlapTimes times;
  const auto run = [&](SlicedConvolution& convolution, const PinnedBuffer& y,
                       std::vector<int64_t>& samples) -> absl::Status {
    ASSIGN_OR_RETURN(const int64_t ns, HostNs([&] {
                       return convolution.Run(
                           static_cast<const float*>(x.data()),
                           static_cast<const float*>(k.data()),
                           static_cast<float*>(y.data()));
                     }));
    samples.push_back(ns);
    return absl::OkStatus();
  };
  // The first of each is the warm-up.
  for (int i = 0; i <= repetitions; ++i) {
    RETURN_IF_ERROR(run(*serial, serial_y, times.serial_ns));
    RETURN_IF_ERROR(run(*overlapped, overlapped_y, times.overlapped_ns));
  }
  times.serial_ns.erase(times.serial_ns.begin());
  times.overlapped_ns.erase(times.overlapped_ns.begin());
  if (std::memcmp(serial_y.data(), overlapped_y.data(), y_bytes) != 0) {
    return absl::InternalError(
        absl::StrCat("streams on ", ToString(problem), " in ", slices,
                     " slices: overlapped slices gave another result"));
  }
  for (const int64_t b : {int64_t{0}, problem.batch - 1}) {
    RETURN_IF_ERROR(CheckImage(variant, problem, b,
                               static_cast<const float*>(x.data()),
                               static_cast<const float*>(k.data()),
                               static_cast<const float*>(serial_y.data())));
  }
  return times;
}

}  // namespace convlab
