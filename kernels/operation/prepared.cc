#include "kernels/operation/prepared.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/accuracy/accuracy.h"
#include "common/math/rounding.h"
#include "common/status/status.h"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/cuda/device.h"
#include "kernels/operation/choice.h"
#include "kernels/operation/cpu/prepared.h"
#include "kernels/operation/cuda/gpu.h"

namespace convlab {
namespace {

int64_t PartBytes(int64_t floats) {
  return RoundUp(floats * static_cast<int64_t>(sizeof(float)),
                 PreparedOperation::kWorkspaceAlignment);
}

const float* Floats(const void* tensor) {
  return static_cast<const float*>(tensor);
}

// For kernels that read the filters as they are.
absl::Status CopyFilters(const Target& target, const void* k, void* filters,
                         int64_t bytes, Stream stream) {
  if (target.backend == Backend::kCpu) {
    std::memcpy(filters, k, bytes);
    return absl::OkStatus();
  }
  const cuda::CurrentDevice current(target.resources.device);
  RETURN_IF_ERROR(current.status());
  return cuda::QueueCopy(filters, k, bytes, stream);
}

// Where x's images stand in those of PaddedProblem.
cuda::Inset InsetOf(const Operation& operation) {
  return {static_cast<int>(operation.top), static_cast<int>(operation.left),
          static_cast<int>(operation.height),
          static_cast<int>(operation.width)};
}

// A variant, and on a GPU what stands around it.
class ByVariant : public PreparedOperation {
 public:
  ByVariant(const Operation& operation, const Target& target,
            const Variant& variant, bool fuses, bool overlaps,
            double estimated_ns, std::unique_ptr<Convolution> convolution)
      : PreparedOperation(operation),
        operation_(operation),
        target_(target),
        fuses_(fuses),
        overlaps_(overlaps),
        convolution_(std::move(convolution)) {
    kernel_ = variant.name;
    accuracy_ = variant.accuracy;
    recordable_ = variant.recordable;
    estimated_ns_ = estimated_ns;
    if (CopiesInput(operation, variant)) {
      padded_bytes_ = PartBytes(operation.padded_elements());
    }
    if (!fuses && (operation.pool.size > 0 || !operation.is_plain())) {
      sums_bytes_ = PartBytes(operation.sums_elements());
    }
    if (operation.halves) {
      accuracy_ = std::max(accuracy_, AccuracyClass::kFp16);
      float_bytes_ = PartBytes(operation.kernel_elements());
    }
    workspace_bytes_ = padded_bytes_ + sums_bytes_ + float_bytes_ +
                       convolution_->workspace_bytes();
    prepares_ = convolution_->filter_bytes() > 0;
    // Behind prepared filters, or in their place, are halves' floats.
    prepared_bytes_ = RoundUp(convolution_->filter_bytes(),
                              PreparedOperation::kWorkspaceAlignment);
    if (prepares_) filter_bytes_ = convolution_->filter_bytes();
    if (operation.halves) filter_bytes_ = prepared_bytes_ + float_bytes_;
  }

  absl::Status Run(const Tensors& tensors, Stream stream) override {
    return Run(tensors, /*prepared=*/false, stream);
  }

  absl::Status PrepareFilters(const void* k, void* filters,
                              Stream stream) override {
    if (operation_.halves) {
      float* const floats = reinterpret_cast<float*>(
          static_cast<char*>(filters) + prepared_bytes_);
      const cuda::CurrentDevice current(target_.resources.device);
      RETURN_IF_ERROR(current.status());
      RETURN_IF_ERROR(
          cuda::FiltersToFloats(operation_, k, floats, overlaps_, stream));
      k = floats;
    }
    if (prepares_) {
      return convolution_->PrepareFilters(Floats(k), filters, stream);
    }
    if (operation_.halves) return absl::OkStatus();
    return CopyFilters(target_, k, filters, filter_bytes_, stream);
  }

  absl::Status RunPrepared(const Tensors& tensors, Stream stream) override {
    return Run(tensors, /*prepared=*/true, stream);
  }

 private:
  absl::Status Run(const Tensors& tensors, bool prepared, Stream stream) {
    const void* k = tensors.k;
    const auto convolve = [&](const float* x, float* y) {
      return prepared && prepares_ ? convolution_->RunPrepared(x, k, y, stream)
                                   : convolution_->Run(x, Floats(k), y, stream);
    };
    char* const workspace = static_cast<char*>(tensors.workspace);
    float* const y = static_cast<float*>(tensors.y);
    if (fuses_ && operation_.bias) {
      convolution_->UseBias(Floats(tensors.bias));
    }
    const float* x = Floats(tensors.x);
    if (target_.backend == Backend::kCpu) return convolve(x, y);
    const cuda::CurrentDevice current(target_.resources.device);
    RETURN_IF_ERROR(current.status());
    if (padded_bytes_ > 0) {
      float* const padded = reinterpret_cast<float*>(workspace);
      RETURN_IF_ERROR(
          cuda::PadInput(operation_, tensors.x, padded, overlaps_, stream));
      x = padded;
    }
    float* const sums =
        sums_bytes_ > 0 ? reinterpret_cast<float*>(workspace + padded_bytes_)
                        : y;
    char* const behind = workspace + padded_bytes_ + sums_bytes_;
    if (operation_.halves && !prepared) {
      float* const floats = reinterpret_cast<float*>(behind);
      RETURN_IF_ERROR(
          cuda::FiltersToFloats(operation_, k, floats, overlaps_, stream));
      k = floats;
    }
    convolution_->UseWorkspace(behind + float_bytes_);
    RETURN_IF_ERROR(convolve(x, sums));
    if (fuses_ || !HasFinish(operation_)) return absl::OkStatus();
    return cuda::FinishSums(operation_, sums, tensors.bias, y, overlaps_,
                            stream);
  }

  const Operation operation_;
  const Target target_;
  const bool fuses_;       // the whole epilogue
  const bool overlaps_;    // what stands around it, with the kernel before
  bool prepares_ = false;  // filters; otherwise a copy of them stays
  const std::unique_ptr<Convolution> convolution_;
  // Parts of the workspace: x, sums, and halves' filters as floats; and of
  // prepared filters what the variant has.
  int64_t padded_bytes_ = 0, sums_bytes_ = 0, float_bytes_ = 0;
  int64_t prepared_bytes_ = 0;
};

class GeneralOnGpu : public PreparedOperation {
 public:
  GeneralOnGpu(const Operation& operation, const Target& target,
               const cuda::GeneralConvolution& convolution)
      : PreparedOperation(operation),
        operation_(operation),
        target_(target),
        convolution_(convolution) {
    estimated_ns_ = convolution.estimated_ns;
    if (operation.halves) accuracy_ = AccuracyClass::kFp16;
    if (convolution.copies_input) {
      copy_bytes_ = PartBytes(operation.input_elements());
    }
    workspace_bytes_ = copy_bytes_;
    if (operation.pool.size > 0) {
      workspace_bytes_ += PartBytes(operation.sums_elements());
    }
  }

  absl::Status Run(const Tensors& tensors, Stream stream) override {
    const cuda::CurrentDevice current(target_.resources.device);
    RETURN_IF_ERROR(current.status());
    const bool overlaps = convolution_.plan.overlaps;
    char* const workspace = static_cast<char*>(tensors.workspace);
    const void* x = tensors.x;
    if (convolution_.copies_input) {
      float* const copy = reinterpret_cast<float*>(workspace);
      RETURN_IF_ERROR(cuda::PadInput(WithoutPadding(operation_), x, copy,
                                     overlaps, stream));
      x = copy;
    }
    if (operation_.pool.size == 0) {
      return cuda::ConvolveGenerally(convolution_, x, tensors.k, tensors.bias,
                                     tensors.y, stream);
    }
    float* const sums = reinterpret_cast<float*>(workspace + copy_bytes_);
    RETURN_IF_ERROR(cuda::ConvolveGenerally(convolution_, x, tensors.k,
                                            /*bias=*/nullptr, sums, stream));
    return cuda::FinishSums(operation_, sums, tensors.bias, tensors.y, overlaps,
                            stream);
  }

  // Blocks bring the filters into their order as they read them.
  absl::Status PrepareFilters(const void* k, void* filters,
                              Stream stream) override {
    return CopyFilters(target_, k, filters, filter_bytes_, stream);
  }
  absl::Status RunPrepared(const Tensors& tensors, Stream stream) override {
    return Run(tensors, stream);
  }

 private:
  const Operation operation_;
  const Target target_;
  const cuda::GeneralConvolution convolution_;
  int64_t copy_bytes_ = 0;  // of x, before the sums in the workspace
};

}  // namespace

absl::StatusOr<std::unique_ptr<PreparedOperation>> PrepareOperation(
    const Operation& operation, const Target& target) {
  RETURN_IF_ERROR(CheckOperation(operation));
  if (operation.halves && target.accuracy < AccuracyClass::kFp16) {
    return absl::InvalidArgumentError(
        absl::StrCat("halves are of class fp16, but class ",
                     Name(target.accuracy), " or better is asked for"));
  }
  if (target.backend == Backend::kCpu && !operation.is_plain()) {
    Operation plain = operation;
    plain.channels_last = plain.halves = false;
    ASSIGN_OR_RETURN(auto prepared, PrepareOperation(plain, target));
    return cpu::Converted(operation, *target.resources.workers,
                          std::move(prepared));
  }
  const bool gpu = target.backend == Backend::kCuda;
  std::unique_ptr<PreparedOperation> general;
  bool overlaps = false;
  if (gpu) {
    const cuda::CurrentDevice current(target.resources.device);
    RETURN_IF_ERROR(current.status());
    ASSIGN_OR_RETURN(const cuda::GeneralConvolution convolution,
                     cuda::PrepareGenerally(operation));
    overlaps = convolution.plan.overlaps;
    general = std::make_unique<GeneralOnGpu>(operation, target, convolution);
  }
  ASSIGN_OR_RETURN(const Variant* const variant,
                   ChooseVariant(operation, target));
  if (variant == nullptr) {
    if (gpu) return general;
    return cpu::PrepareGenerally(operation, *target.resources.workers);
  }
  const Problem problem = PaddedProblem(operation);
  Epilogue epilogue = EpilogueOf(operation);
  const absl::Status fuses = CheckFuses(operation, *variant, target.resources);
  if (!fuses.ok()) {
    if (!gpu || !absl::IsUnimplemented(fuses)) return fuses;
    epilogue = {};
  }
  ASSIGN_OR_RETURN(const double ns,
                   EstimateNs(operation, target, *variant, fuses.ok()));
  if (gpu && target.kernel.empty() && general->estimated_ns() < ns) {
    return general;
  }
  Target kept = target;
  kept.resources.callers_workspace = true;
  RETURN_IF_ERROR(variant->Check(problem, kept.resources, epilogue));
  ASSIGN_OR_RETURN(
      auto convolution,
      !CopiesInput(operation, *variant) && variant->make_padded != nullptr
          ? variant->make_padded(problem, epilogue, InsetOf(operation),
                                 kept.resources)
          : variant->Create(problem, kept.resources, epilogue));
  return std::make_unique<ByVariant>(operation, kept, *variant, fuses.ok(),
                                     overlaps, ns, std::move(convolution));
}

absl::StatusOr<double> EstimateCudnnNs(const Operation& operation,
                                       const Target& target) {
  if (target.backend == Backend::kCpu) return 0;
  const cuda::CurrentDevice current(target.resources.device);
  RETURN_IF_ERROR(current.status());
  return cuda::EstimateCudnnNs(operation);
}

absl::Status CheckMemory(const Target& target, const char* name,
                         const void* memory) {
  if (target.backend == Backend::kCpu) return absl::OkStatus();
  return cuda::CheckDeviceMemory(target.resources.device, name, memory);
}

absl::Status CheckQueue(const Target& target, uint64_t context, bool recordable,
                        Stream stream) {
  if (target.backend == Backend::kCpu) return absl::OkStatus();
  const int device = target.resources.device;
  if (context != ContextOf(target)) {
    return absl::InvalidArgumentError(
        absl::StrCat("GPU ", device,
                     " has been reset since the plan was made, expected a plan "
                     "that was made later"));
  }
  return cuda::CheckStream(device, recordable, stream);
}

uint64_t ContextOf(const Target& target) {
  if (target.backend == Backend::kCpu) return 0;
  const cuda::CurrentDevice current(target.resources.device);
  return current.status().ok() ? cuda::ContextNumber() : 0;
}

}  // namespace convlab
