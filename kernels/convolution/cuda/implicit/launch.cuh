// The launch of the kernels in tensor_core.cuh: what tensor_tf32 and
// tensor_fp16 share on the host.
#ifndef KERNELS_CONVOLUTION_CUDA_IMPLICIT_LAUNCH_CUH_
#define KERNELS_CONVOLUTION_CUDA_IMPLICIT_LAUNCH_CUH_

#include <cstdint>
#include <utility>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/implicit/plan.h"
#include "kernels/convolution/cuda/implicit/tensor_core.cuh"
#include "kernels/convolution/cuda/lib/arranging_kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/tile_steps.h"

namespace convlab::cuda {

struct TensorCoreTable {
  void (*kernels[kImplicitShapeCount])(const float*, const uint32_t*, float*,
                                       ImplicitPlan);
};

// The kernels of kImplicitShapes, in the same order.
template <typename Words, int... kIndices>
constexpr TensorCoreTable MakeTensorCoreTable(
    std::integer_sequence<int, kIndices...>) {
  return {{TensorCoreKernel<Words, kImplicitShapes[kIndices].tiles_m,
                            kImplicitShapes[kIndices].tiles_n>...}};
}
template <typename Words>
constexpr TensorCoreTable kTensorCoreTable = MakeTensorCoreTable<Words>(
    std::make_integer_sequence<int, kImplicitShapeCount>());

// `Words` packs values into words and multiplies them: kValues, Pack and
// MultiplyAdd.
template <typename Words>
class TensorCore : public ArrangingKernel {
 public:
  using ArrangingKernel::ArrangingKernel;

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    shape_ = ChooseImplicitShape(problem_, Words::kValues, limits, &plan_);
    if (shape_ < 0) return {"TensorCore::Prepare", "no tile fits"};
    words_ = int64_t{plan_.chunks} * plan_.filter_blocks *
             plan_.filter_words(kImplicitShapes[shape_].tiles_n);
    ReserveFilters(/*filters=*/0, 4 * words_, /*tiles=*/0);
    const auto kernel =
        reinterpret_cast<const void*>(kTensorCoreTable<Words>.kernels[shape_]);
    RETURN_IF_FAILED(AllowAllSharedMemory(kernel));
    int resident = 0;
    RETURN_IF_CUDA_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &resident, kernel, kImplicitThreads, plan_.shared_bytes));
    blocks_ = ImagesAtOnce(int64_t{limits.multiprocessors} * resident,
                           plan_.places(), plan_.batch) *
              plan_.places();
    return {};
  }

  Error Arrange(const ArrangedFilters& filters, cudaStream_t stream) override {
    ArrangeTensorCoreFiltersKernel<Words>
        <<<CeilDivide(words_, kImplicitThreads), kImplicitThreads, 0, stream>>>(
            filters.k, reinterpret_cast<uint32_t*>(filters.data), plan_,
            kImplicitShapes[shape_].tiles_n, words_);
    return CheckLaunch("ArrangeTensorCoreFiltersKernel");
  }

  Error Convolve(const float* x, const ArrangedFilters& filters, float* y,
                 cudaStream_t stream) override {
    kTensorCoreTable<Words>.kernels
        [shape_]<<<blocks_, kImplicitThreads, plan_.shared_bytes, stream>>>(
            x, reinterpret_cast<const uint32_t*>(filters.data), y, plan_);
    return CheckLaunch("TensorCoreKernel");
  }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason =
            RejectWithoutTensorCores(reinterpret_cast<const void*>(
                kTensorCoreTable<Words>.kernels[0]))) {
      return reason;
    }
    DeviceLimits limits;
    ImplicitPlan plan;
    // A device that cannot be asked fails in Prepare, with the reason.
    if (AskLimits(&limits).failed()) return nullptr;
    return ChooseImplicitShape(problem, Words::kValues, limits, &plan) < 0
               ? kTileTooLarge
               : nullptr;
  }

 private:
  int shape_ = -1;
  ImplicitPlan plan_ = {};
  int64_t words_ = 0;  // of all filters, arranged
  int64_t blocks_ = 0;
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_IMPLICIT_LAUNCH_CUH_
