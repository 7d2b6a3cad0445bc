#include <algorithm>

#include "common/parallel/loop_workers.h"
#include "common/status/status.h"
#include "kernels/inference/machine.h"
#include "kernels/layers/layers.h"

namespace convlab {
namespace {

class CpuMachine : public Machine {
 public:
  explicit CpuMachine(Workers& workers) : workers_(workers) {}

  absl::StatusOr<int64_t> ActivationBytes(
      const InferenceOptions& options) override {
    return options.activation_bytes * Threads();
  }

  int64_t ImageBytes(int64_t, int64_t flattened) const override {
    return flattened * sizeof(float);
  }

  int64_t PieceOf(int64_t slice, int64_t image_bytes,
                  const InferenceOptions& options) const override {
    const int64_t cached = options.cached_bytes * Threads();
    return std::clamp<int64_t>(cached / image_bytes, 1, slice);
  }

  absl::StatusOr<std::shared_ptr<float>> Allocate(int64_t floats) override {
    // Written once here, so that no layer's time includes the page faults.
    const auto values = std::make_shared<std::vector<float>>(floats);
    return std::shared_ptr<float>(values, values->data());
  }

  absl::StatusOr<std::shared_ptr<const float>> Place(
      const std::vector<float>& host) override {
    return std::shared_ptr<const float>(std::shared_ptr<void>(), host.data());
  }

  absl::StatusOr<std::shared_ptr<const float>> PlaceMatrix(
      int64_t inputs, int64_t outputs,
      const std::vector<float>& host) override {
    return PackWeights(inputs, outputs, host.data(), workers_);
  }

  absl::StatusOr<int64_t> MemoryInUse() override { return 0; }

  absl::Status Load(const uint8_t* host_images, int64_t count, int size,
                    int enlarged, float*, float* out) override {
    EnlargeToFloats(host_images, count, size, enlarged, out, workers_);
    return absl::OkStatus();
  }

  absl::Status Convolve(Convolution& convolution, const float* x,
                        const float* k, float* y, OpTime& time) override {
    TakeLoopWorkers();
    ASSIGN_OR_RETURN(const int64_t ns, HostNs([&] {
                       return convolution.Run(x, k, y, /*stream=*/nullptr);
                     }));
    time.op_ns += ns;
    time.threads = std::max(time.threads, TakeLoopWorkers());
    return absl::OkStatus();
  }

  absl::Status AddBias(int64_t batch, int64_t channels, int64_t area,
                       const float* bias, float* values) override {
    convlab::AddBias(batch, channels, area, bias, values, workers_);
    return absl::OkStatus();
  }

  absl::Status Activate(Activation activation, int64_t count,
                        float* values) override {
    convlab::Activate(activation, count, values, workers_);
    return absl::OkStatus();
  }

  absl::Status ActivateAndPool(Activation activation, const MaxPool& pool,
                               int64_t planes, int64_t size, float* in,
                               float* out) override {
    PoolMax(pool, activation, planes, size, in, out, workers_);
    return absl::OkStatus();
  }

  absl::Status FullyConnected(int64_t batch, int64_t inputs, int64_t outputs,
                              const float* in, const float* weight,
                              const float* bias, float* out, float*,
                              int64_t) override {
    convlab::FullyConnected(batch, inputs, outputs, in, weight, bias, out,
                            workers_);
    return absl::OkStatus();
  }

  absl::Status Download(const float* values, int64_t count,
                        float* host) override {
    std::copy_n(values, count, host);
    return absl::OkStatus();
  }

  absl::Status Classify(int64_t batch, int classes, float* values, float*,
                        uint8_t* host_labels) override {
    Softmax(batch, classes, values);
    for (int64_t b = 0; b < batch; ++b) {
      const float* row = values + b * classes;
      host_labels[b] = std::max_element(row, row + classes) - row;
    }
    return absl::OkStatus();
  }

 private:
  // The threads for which memory is allocated.
  int64_t Threads() const { return std::min(workers_.count(), 16); }

  Workers& workers_;
};

}  // namespace

std::unique_ptr<Machine> MakeCpuMachine(Workers& workers) {
  return std::make_unique<CpuMachine>(workers);
}

}  // namespace convlab
