#include "tools/bench/cheats.h"

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "common/status/status.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/sampled_reference.h"

namespace convlab {
namespace {

// Memory of the backend.
class Memory {
 public:
  static absl::StatusOr<Memory> Allocate(Backend backend, int64_t floats) {
    Memory memory;
    if (backend == Backend::kCpu) {
      memory.host_.resize(floats);
    } else {
      ASSIGN_OR_RETURN(memory.device_,
                       cuda::DeviceBuffer::Allocate(4 * floats));
    }
    return memory;
  }
  float* data() { return host_.empty() ? device_.floats() : host_.data(); }

 private:
  std::vector<float> host_;
  cuda::DeviceBuffer device_;
};

absl::Status Copy(Backend backend, float* to, const float* from,
                  int64_t floats) {
  if (backend == Backend::kCuda) {
    return cuda::QueueCopy(to, from, 4 * floats, /*stream=*/nullptr);
  }
  std::memcpy(to, from, 4 * floats);
  return absl::OkStatus();
}

absl::Status Clear(Backend backend, float* values, int64_t floats) {
  if (backend == Backend::kCuda) return cuda::FillBytes(values, 0, 4 * floats);
  std::memset(values, 0, 4 * floats);
  return absl::OkStatus();
}

// What every trick has: an honest convolution, and the number of runs so far.
class Trick : public Convolution {
 public:
  Trick(Backend backend, const Problem& problem,
        std::unique_ptr<Convolution> honest,
        std::unique_ptr<Convolution> honest_image)
      : backend_(backend),
        problem_(problem),
        honest_(std::move(honest)),
        honest_image_(std::move(honest_image)) {}

  absl::Status Run(const float* x, const float* k, float* y,
                   Stream stream) override {
    ++runs_;
    return Cheat(x, k, y, stream);
  }

 protected:
  virtual absl::Status Cheat(const float* x, const float* k, float* y,
                             Stream stream) = 0;

  // What was stored for the pointer; copies `from` when it is first seen.
  absl::StatusOr<float*> Kept(const float* pointer, const float* from,
                              int64_t floats) {
    auto found = kept_.find(pointer);
    if (found == kept_.end()) {
      ASSIGN_OR_RETURN(Memory memory, Memory::Allocate(backend_, floats));
      RETURN_IF_ERROR(Copy(backend_, memory.data(), from, floats));
      found = kept_.emplace(pointer, std::move(memory)).first;
    }
    return found->second.data();
  }

  const Backend backend_;
  const Problem problem_;
  const std::unique_ptr<Convolution> honest_;
  const std::unique_ptr<Convolution> honest_image_;  // of one image
  std::map<const float*, Memory> kept_;
  int runs_ = 0;
};

class SkipsLaterRuns : public Trick {
  using Trick::Trick;
  absl::Status Cheat(const float* x, const float* k, float* y,
                     Stream stream) override {
    if (runs_ > 2) return absl::OkStatus();
    return honest_->Run(x, k, y, stream);
  }
};

class ComputesWhatIsVerified : public Trick {
  using Trick::Trick;
  absl::Status Cheat(const float* x, const float* k, float* y,
                     Stream stream) override {
    RETURN_IF_ERROR(Clear(backend_, y, problem_.output_elements()));
    const int64_t inputs = problem_.input_elements() / problem_.batch;
    const int64_t outputs = problem_.output_elements() / problem_.batch;
    for (const int64_t b : CheckedImages(problem_.batch)) {
      RETURN_IF_ERROR(
          honest_image_->Run(x + b * inputs, k, y + b * outputs, stream));
    }
    return absl::OkStatus();
  }
};

class KeepsResults : public Trick {
  using Trick::Trick;
  absl::Status Cheat(const float* x, const float* k, float* y,
                     Stream stream) override {
    if (kept_.count(x) == 0) {
      RETURN_IF_ERROR(honest_->Run(x, k, y, stream));
    }
    ASSIGN_OR_RETURN(const float* const kept,
                     Kept(x, y, problem_.output_elements()));
    return Copy(backend_, y, kept, problem_.output_elements());
  }
};

// As one would who transforms the images once and keeps that.
class KeepsImages : public Trick {
  using Trick::Trick;
  absl::Status Cheat(const float* x, const float* k, float* y,
                     Stream stream) override {
    ASSIGN_OR_RETURN(const float* const kept,
                     Kept(x, x, problem_.input_elements()));
    return honest_->Run(kept, k, y, stream);
  }
};

class KeepsWeights : public Trick {
  using Trick::Trick;
  absl::Status Cheat(const float* x, const float* k, float* y,
                     Stream stream) override {
    ASSIGN_OR_RETURN(const float* const kept,
                     Kept(k, k, problem_.kernel_elements()));
    return honest_->Run(x, kept, y, stream);
  }
};

class LeavesImagesOut : public Trick {
  using Trick::Trick;
  absl::Status Cheat(const float* x, const float* k, float* y,
                     Stream stream) override {
    if (runs_ <= 2) return honest_->Run(x, k, y, stream);
    const int64_t inputs = problem_.input_elements() / problem_.batch;
    const int64_t outputs = problem_.output_elements() / problem_.batch;
    for (int64_t b = 0; b < problem_.batch; ++b) {
      if (b == problem_.batch / 3) continue;
      RETURN_IF_ERROR(
          honest_image_->Run(x + b * inputs, k, y + b * outputs, stream));
    }
    return absl::OkStatus();
  }
};

class ChangesImages : public Trick {
  using Trick::Trick;
  absl::Status Cheat(const float* x, const float* k, float* y,
                     Stream stream) override {
    RETURN_IF_ERROR(honest_->Run(x, k, y, stream));
    return Clear(backend_, const_cast<float*>(x) + 7, 1);
  }
};

class ChangesWeightsLater : public Trick {
  using Trick::Trick;
  absl::Status Cheat(const float* x, const float* k, float* y,
                     Stream stream) override {
    RETURN_IF_ERROR(honest_->Run(x, k, y, stream));
    if (runs_ <= 2) return absl::OkStatus();
    return Clear(backend_, const_cast<float*>(k), 1);
  }
};

class WritesBehindOutput : public Trick {
  using Trick::Trick;
  absl::Status Cheat(const float* x, const float* k, float* y,
                     Stream stream) override {
    RETURN_IF_ERROR(honest_->Run(x, k, y, stream));
    return Clear(backend_, y + problem_.output_elements() + 20, 1);
  }
};

// On the GPU: in a stream that waits for no other, so that events in the one
// that it was given see nothing.
class RunsAside : public Trick {
  using Trick::Trick;
  absl::Status Cheat(const float* x, const float* k, float* y,
                     Stream) override {
    if (!aside_) {
      ASSIGN_OR_RETURN(cuda::DeviceStream stream, cuda::DeviceStream::Create());
      aside_.emplace(std::move(stream));
    }
    return honest_->Run(x, k, y, aside_->get());
  }
  std::optional<cuda::DeviceStream> aside_;
};

class WrongElement : public Trick {
  using Trick::Trick;
  absl::Status Cheat(const float* x, const float* k, float* y,
                     Stream stream) override {
    RETURN_IF_ERROR(honest_->Run(x, k, y, stream));
    const int64_t outputs = problem_.output_elements() / problem_.batch;
    return Clear(backend_, y + outputs + 5, 1);
  }
};

class Later : public Trick {
 public:
  using Trick::Trick;
  ~Later() override { Wait(); }

 private:
  absl::Status Cheat(const float* x, const float* k, float* y,
                     Stream stream) override {
    Wait();
    if (runs_ == 1) return honest_->Run(x, k, y, stream);
    thread_ = std::thread([=] { honest_->Run(x, k, y, stream).IgnoreError(); });
    return absl::OkStatus();
  }
  void Wait() {
    if (thread_.joinable()) thread_.join();
  }
  std::thread thread_;
};

template <typename OneTrick, Backend backend>
absl::StatusOr<std::unique_ptr<Convolution>> Make(const Problem& problem,
                                                  const Epilogue&,
                                                  const Resources& resources) {
  ASSIGN_OR_RETURN(
      const Variant* const honest,
      FindVariant(backend, backend == Backend::kCpu ? "vectorized" : "naive"));
  Resources own = resources;
  // The program's workers are in use while ComputesLater computes.
  static Workers one(1);
  if (std::is_same_v<OneTrick, Later>) own.workers = &one;
  Problem image = problem;
  image.batch = 1;
  ASSIGN_OR_RETURN(auto all, honest->Create(problem, own));
  ASSIGN_OR_RETURN(auto single, honest->Create(image, own));
  return std::make_unique<OneTrick>(backend, problem, std::move(all),
                                    std::move(single));
}

template <typename OneTrick, Backend backend>
Variant VariantOf(const char* name) {
  return {
      name,       backend,      AccuracyClass::kFp32, Track::kSpecialty,
      "A cheat.", "It cheats.", SupportsAll,          Make<OneTrick, backend>};
}

template <Backend backend>
std::vector<Cheat> AllOf() {
  constexpr char kWrong[] =
      "sample .*(have a relative error|breaks the contract)";
  constexpr char kChanged[] = "the inputs or the weights were changed";
  std::vector<Cheat> cheats = {
      {VariantOf<SkipsLaterRuns, backend>("skips_later_runs"), kWrong},
      {VariantOf<ComputesWhatIsVerified, backend>("computes_what_is_verified"),
       kWrong},
      {VariantOf<KeepsResults, backend>("keeps_results"), kWrong},
      {VariantOf<KeepsImages, backend>("keeps_images"), kWrong},
      {VariantOf<KeepsWeights, backend>("keeps_weights"), kWrong},
      {VariantOf<LeavesImagesOut, backend>("leaves_images_out"), kWrong},
      {VariantOf<ChangesImages, backend>("changes_images"), kChanged},
      {VariantOf<ChangesWeightsLater, backend>("changes_weights_later"),
       kChanged},
      {VariantOf<WritesBehindOutput, backend>("writes_behind_output"),
       "beside the output|bytes behind y"},
  };
  if (backend == Backend::kCuda) {
    cheats.push_back({VariantOf<RunsAside, backend>("runs_aside"), "stream"});
  }
  return cheats;
}

}  // namespace

const std::vector<Cheat>& Cheats(Backend backend) {
  static const auto* const cpu = new std::vector<Cheat>(AllOf<Backend::kCpu>());
  static const auto* const gpu =
      new std::vector<Cheat>(AllOf<Backend::kCuda>());
  return backend == Backend::kCpu ? *cpu : *gpu;
}

const Variant& OneWrongElement(Backend backend) {
  static const Variant cpu =
      VariantOf<WrongElement, Backend::kCpu>("one_wrong_element");
  static const Variant gpu =
      VariantOf<WrongElement, Backend::kCuda>("one_wrong_element");
  return backend == Backend::kCpu ? cpu : gpu;
}

const Variant& ComputesLater() {
  static const Variant later =
      VariantOf<Later, Backend::kCpu>("computes_later");
  return later;
}

}  // namespace convlab
