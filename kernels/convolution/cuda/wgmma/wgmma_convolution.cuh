// Launches the kernels of tensor_wgmma and wgmma_fp16: the arrangement of the
// filters, and the convolution.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_WGMMA_CONVOLUTION_CUH_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_WGMMA_CONVOLUTION_CUH_

#include <cstdint>
#include <utility>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/arranging_kernel.h"
#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/inset.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/mend.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/wgmma/arrange.cuh"
#include "kernels/convolution/cuda/wgmma/plan.h"
#include "kernels/convolution/cuda/wgmma/wgmma_kernel.cuh"

namespace convlab::cuda {

// The convolution with operands of kParts parts (WgmmaShape::parts), where
// kPadded of images whose zeros are not in memory.
template <int kParts, bool kPadded = false>
class WgmmaConvolution : public ArrangingKernel {
 public:
  using ArrangingKernel::ArrangingKernel;

  Error Prepare() override { return Prepare(/*inset=*/nullptr); }
  // x has images inside of the problem's, unless `inset` is null.
  Error Prepare(const Inset* inset) {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (!MakeWgmmaPlan(problem_, kParts, limits, &plan_, epilogue_, inset)) {
      return {"WgmmaConvolution::Prepare",
              "no plan fits into shared memory, though Reject found one"};
    }
    RETURN_IF_FAILED(
        AllowAllSharedMemory(reinterpret_cast<const void*>(Function())));
    overlaps_ = MayOverlap(reinterpret_cast<const void*>(Function()));
    blocks_ = plan_.slab_count() < limits.multiprocessors
                  ? plan_.slab_count()
                  : limits.multiprocessors;
    mender_ = Mender(problem_, epilogue_, SlabTiles(plan_));
    mender_.UseInset(plan_.inset);
    ReserveFilters(filters(), plan_.filter_bytes(kParts),
                   blocks_ * CeilDivide(plan_.slab_count(), blocks_));
    return {};
  }

  Error Arrange(const ArrangedFilters& to, cudaStream_t stream) override {
    const WgmmaShape& shape = kWgmmaShapes[plan_.shape];
    return LaunchOverlapping(
        "ArrangeWgmmaFiltersKernel", ArrangeWgmmaFiltersKernel<kParts>,
        overlaps_, filters(), 256, /*shared_bytes=*/0, stream, to.k,
        reinterpret_cast<uint32_t*>(to.data), to.known, plan_, shape.octets,
        shape.shifts, shape.vector_rows, shape.wide);
  }

  Error Convolve(const float* x, const ArrangedFilters& arranged, float* y,
                 cudaStream_t stream) override {
    WgmmaPlan plan = plan_;
    // The copy engine takes addresses that are multiples of 16 bytes; without
    // it converters read the images themselves.
    if (reinterpret_cast<uintptr_t>(x) % 16 != 0)
      plan.raw_words = plan.raw_buffers = 0;
    // It begins while the kernel before it ends: that one arranges the filters,
    // or may compute the inputs.
    plan.follows_inputs = !arranged.just_now;
    return LaunchOverlapping("WgmmaKernel", Function(), overlaps_, blocks_,
                             kWgmmaShapes[plan.shape].threads,
                             Mender::SharedBytes(plan.shared_bytes), stream, x,
                             reinterpret_cast<const uint4*>(arranged.data),
                             mender_.Arguments(arranged), y, plan);
  }

  void UseBias(const float* bias) override { mender_.UseBias(bias); }

  static const char* Reject(const Problem& problem) {
    if (const char* const reason = RejectWithoutWarpgroupProducts(
            reinterpret_cast<const void*>(FirstFunction()))) {
      return reason;
    }
    if (const char* const reason = RejectHugeImages(problem)) return reason;
    DeviceLimits limits;
    // If the device cannot be asked, Prepare fails with the reason.
    if (AskLimits(&limits).failed()) return nullptr;
    if (!CompiledFor(problem.kernel_size)) {
      return "takes filters of 3 x 3, 5 x 5, 7 x 7 and 9 x 9";
    }
    WgmmaPlan plan;
    return MakeWgmmaPlan(problem, kParts, limits, &plan)
               ? nullptr
               : "the filters and a slab of all channels do not fit into "
                 "shared memory";
  }

  static const char* RejectEpilogue(const Problem& problem,
                                    const Epilogue& epilogue) {
    DeviceLimits limits;
    if (AskLimits(&limits).failed()) return nullptr;
    WgmmaPlan plan;
    return MakeWgmmaPlan(problem, kParts, limits, &plan, epilogue)
               ? nullptr
               : "pools outputs of filters of 5 x 5 by windows of 2 x 2 where "
                 "channels are no multiple of four, and those of 7 x 7 by "
                 "windows of 4 x 4 where they are, of images that fit into "
                 "shared memory and have enough of them";
  }

 private:
  using FunctionPointer = void (*)(const float*, const uint4*, Mend, float*,
                                   WgmmaPlan);

  static bool CompiledFor(int kernel_size) {
    for (const WgmmaShape& shape : kWgmmaShapes) {
      if (shape.kernel_size == kernel_size && shape.parts == kParts)
        return true;
    }
    return false;
  }

  // The shape's kernel, or null if the shape has another number of parts.
  template <int kShape>
  static FunctionPointer FunctionOf() {
    if constexpr (kWgmmaShapes[kShape].parts == kParts) {
      return WgmmaKernel<kShape, kPadded>;
    } else {
      return nullptr;
    }
  }
  template <int... kShapes>
  static FunctionPointer FunctionAt(int shape,
                                    std::integer_sequence<int, kShapes...>) {
    const FunctionPointer functions[] = {FunctionOf<kShapes>()...};
    return functions[shape];
  }
  static FunctionPointer FunctionOfShape(int shape) {
    return FunctionAt(shape,
                      std::make_integer_sequence<int, kWgmmaShapeCount>());
  }
  FunctionPointer Function() const { return FunctionOfShape(plan_.shape); }
  static FunctionPointer FirstFunction() {
    int shape = 0;
    while (kWgmmaShapes[shape].parts != kParts) ++shape;
    return FunctionOfShape(shape);
  }

  // Those that fill the groups.
  int64_t filters() const {
    return int64_t{plan_.groups} * 8 * kWgmmaShapes[plan_.shape].octets;
  }

  WgmmaPlan plan_ = {};
  bool overlaps_ = false;
  Mender mender_;
  int64_t blocks_ = 0;
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_WGMMA_CONVOLUTION_CUH_
