#include "kernels/operation/choice.h"

#include "absl/strings/str_cat.h"
#include "common/accuracy/accuracy.h"
#include "common/status/status.h"
#include "kernels/convolution/fastest.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "kernels/operation/cuda/gpu.h"

namespace convlab {
namespace {

// Whether a variant takes the operation on the target, as far as padding,
// strides and the filters' shape decide; otherwise Unimplemented.
absl::Status CheckForVariants(const Operation& operation,
                              const Target& target) {
  Operation plain = operation;
  plain.channels_last = plain.halves = false;
  if (!IsProblem(plain)) {
    return absl::UnimplementedError(
        "variants take stride 1 and square filters only");
  }
  if (target.backend == Backend::kCpu && operation.padded()) {
    return absl::UnimplementedError(
        "variants on the CPU take no padding; the general kernel does");
  }
  return absl::OkStatus();
}

// Of what stands around the variant.
absl::StatusOr<double> EstimateAroundNs(const Operation& operation,
                                        const Target& target,
                                        const Variant& variant, bool fuses) {
  if (target.backend == Backend::kCpu) return 0;
  cuda::WorkAround work;
  work.copies_input = CopiesInput(operation, variant);
  work.converts_filters = operation.halves;
  work.finishes = !fuses && HasFinish(operation);
  const cuda::CurrentDevice current(target.resources.device);
  RETURN_IF_ERROR(current.status());
  return cuda::EstimateAroundNs(operation, work);
}

}  // namespace

Epilogue EpilogueOf(const Operation& operation) {
  static constexpr float kLater = 0;
  return {operation.bias ? &kLater : nullptr, operation.activation,
          operation.pool};
}

bool CopiesInput(const Operation& operation, const Variant& variant) {
  return !operation.is_plain() ||
         (operation.padded() && variant.make_padded == nullptr);
}

bool HasFinish(const Operation& operation) {
  return operation.has_epilogue() || !operation.is_plain();
}

absl::Status CheckFuses(const Operation& operation, const Variant& variant,
                        const Resources& resources) {
  if (!operation.is_plain()) {
    return absl::UnimplementedError("y is in another format");
  }
  return variant.Check(PaddedProblem(operation), resources,
                       EpilogueOf(operation));
}

absl::StatusOr<const Variant*> ChooseVariant(const Operation& operation,
                                             const Target& target) {
  if (target.kernel == kGeneralKernel) return nullptr;
  const absl::Status takes = CheckForVariants(operation, target);
  if (!target.kernel.empty()) {
    const absl::StatusOr<const Variant*> found =
        FindVariant(target.backend, target.kernel);
    if (!found.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(found.status().message(), ", ", kGeneralKernel));
    }
    const Variant* const variant = *found;
    RETURN_IF_ERROR(Annotate(takes, target.kernel));
    if (variant->accuracy > target.accuracy) {
      return absl::UnimplementedError(
          absl::StrCat(target.kernel, " is of class ", Name(variant->accuracy),
                       ", expected ", Name(target.accuracy), " or better"));
    }
    if (target.resources.recorded && !variant->recordable) {
      return absl::UnimplementedError(
          absl::StrCat(target.kernel, " cannot be recorded in a CUDA graph"));
    }
    return variant;
  }
  if (!takes.ok()) return nullptr;
  AroundNs around_ns;
  if (target.backend == Backend::kCuda) {
    around_ns = [&](const Variant& one) -> absl::StatusOr<double> {
      const absl::Status fuses = CheckFuses(operation, one, target.resources);
      // One that could not be asked is no reason to take a slower one.
      if (!fuses.ok() && !absl::IsUnimplemented(fuses)) return fuses;
      return EstimateAroundNs(operation, target, one, fuses.ok());
    };
  }
  absl::StatusOr<const Variant*> variant =
      FastestVariant(target.backend, PaddedProblem(operation), target.resources,
                     target.accuracy, around_ns);
  if (absl::IsUnimplemented(variant.status())) return nullptr;
  return variant;
}

absl::StatusOr<double> EstimateNs(const Operation& operation,
                                  const Target& target, const Variant& variant,
                                  bool fuses) {
  if (variant.estimate_ns == nullptr) return 0;
  const absl::StatusOr<double> ns =
      variant.estimate_ns(PaddedProblem(operation), target.resources);
  if (absl::IsUnimplemented(ns.status())) return 0;
  if (!ns.ok()) return ns.status();
  ASSIGN_OR_RETURN(const double around_ns,
                   EstimateAroundNs(operation, target, variant, fuses));
  return *ns + around_ns;
}

}  // namespace convlab
