// What the roles of a block of WgmmaKernel share: the shape's numbers as
// constants, the layout of shared memory, the barriers, and where a slab of the
// batch lies.
#ifndef KERNELS_CONVOLUTION_CUDA_WGMMA_BLOCK_CUH_
#define KERNELS_CONVOLUTION_CUDA_WGMMA_BLOCK_CUH_

#include <cstdint>

#include "kernels/convolution/cuda/lib/halves.cuh"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/wgmma/plan.h"

namespace convlab::cuda {

// The row of kWgmmaShapes that a kernel is compiled for, number by number:
// device code cannot refer to an object that the host owns.
template <int kShape>
struct WgmmaConstants {
  static constexpr int kKernelSize = kWgmmaShapes[kShape].kernel_size;
  static constexpr int kRows = kWgmmaShapes[kShape].rows;
  static constexpr int kVectorRows = kWgmmaShapes[kShape].vector_rows;
  static constexpr int kOctets = kWgmmaShapes[kShape].octets;
  static constexpr int kShifts = kWgmmaShapes[kShape].shifts;
  static constexpr bool kWide = kWgmmaShapes[kShape].wide;
  static constexpr bool kDirect = kWgmmaShapes[kShape].direct;
  static constexpr int kPool = kWgmmaShapes[kShape].pool;
  static constexpr bool kOwnSlabs = kWgmmaShapes[kShape].own_slabs;
  static constexpr int kParts = kWgmmaShapes[kShape].parts;
  // Rows of operands, or pairs of them, that are loaded before they are
  // multiplied.
  static constexpr int kAhead = 2;
  static constexpr bool kByPixel = kWgmmaShapes[kShape].by_pixel;
  static constexpr int kValues = kWgmmaShapes[kShape].values();
  static constexpr int kMostBarriers = kWgmmaShapes[kShape].most_barriers();

  static constexpr int kThreads = kWgmmaShapes[kShape].threads;
  static constexpr int kMultipliers = kWgmmaShapes[kShape].multipliers;
  static constexpr int kMultiplierWarps = 4 * kMultipliers;
  static constexpr int kMultiplierRegisters =
      kWgmmaShapes[kShape].multiplier_registers();
  static constexpr int kConverterWarps = kWgmmaShapes[kShape].converter_warps();
  static constexpr int kConverterGroups = kWgmmaShapes[kShape].converter_groups;
  static constexpr int kConverterRegisters =
      kWgmmaShapes[kShape].converter_registers();
  // Of one group.
  static constexpr int kConverterThreads =
      kConverterWarps / kConverterGroups * 32;
  // The threads that multiply one slab.
  static constexpr int kSlabThreads = kOwnSlabs ? 128 : 32 * kMultiplierWarps;

  static constexpr int kGroupFilters = 8 * kOctets;
  // WgmmaShape::input_rows, vectors and sums.
  static constexpr int kInputRows = kWgmmaShapes[kShape].input_rows();
  static constexpr int kVectors = kWgmmaShapes[kShape].vectors();
  static constexpr int kSums = kWgmmaShapes[kShape].sums();
  // The rows of an arranged filter: zeros stand before and after it, so that
  // one product can have several output rows. And the bytes of such a row for
  // one step.
  static constexpr int kFilterRows = kKernelSize + 2 * (kVectorRows - 1);
  static constexpr int kFilterRowBytes = kShifts * kOctets * 256;

  // The barriers of a ring of `buffers` buffers.
  static __device__ __forceinline__ int Barriers(int buffers) {
    constexpr WgmmaShape kRow = kWgmmaShapes[kShape];
    return kRow.barriers(buffers);
  }
};

#if __CUDA_ARCH_FEAT_SM90_ALL

template <int kI>
struct Index {
  static constexpr int value = kI;
};
// Calls f(Index<0>()) to f(Index<kCount - 1>()).
template <int kCount, typename F>
__device__ __forceinline__ void Unroll(const F& f) {
  if constexpr (kCount > 0) {
    Unroll<kCount - 1>(f);
    f(Index<kCount - 1>());
  }
}

// Where p stands among the 32 words of 128 bytes.
__device__ __forceinline__ int WordInLine(const void* p) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(p) / 4 % 32);
}

// Slab `index` of the batch.
struct Slab {
  int64_t image;
  int first_row, rows;  // of the output
  // Its units, and how many units of its first band belong to the slab
  // before.
  int units, units_before;

  template <int kShape>
  static __device__ __forceinline__ Slab At(const WgmmaPlan& plan, int index) {
    using C = WgmmaConstants<kShape>;
    Slab slab;
    const int image = plan.slabs_divisor.Quotient(index);
    const int part = index - image * plan.slabs;
    const int first = part * plan.slab_units;
    int band = part * plan.slab_bands, bands = plan.slab_bands;
    slab.image = image;
    slab.units = min(plan.slab_units, plan.units - first);
    slab.units_before = 0;
    if constexpr (C::kDirect && C::kPool == 0) {
      band = plan.units_divisor.Quotient(first);
      slab.units_before = first - band * plan.band_units;
      bands =
          plan.units_divisor.Quotient(slab.units_before + slab.units - 1) + 1;
    }
    slab.first_row = band * C::kRows;
    slab.rows = min((band + bands) * C::kRows, plan.H_out) - slab.first_row;
    return slab;
  }
  // Of the rows of inputs that its outputs need, those of x's image: the first,
  // how many there are, and how many rows of zeros stand above them.
  struct Inputs {
    int first_row, rows, above;
  };
  // All rows unless the image is kPadded.
  template <int kShape, bool kPadded>
  __device__ Inputs InputsOf(const WgmmaPlan& plan) const {
    const int all = rows + WgmmaConstants<kShape>::kKernelSize - 1;
    if constexpr (kPadded) {
      const int top = first_row - plan.inset.top;
      const int first = max(top, 0);
      const int end = min(top + all, plan.inset.height);
      return {first, max(end - first, 0), first - top};
    }
    return {first_row, all, 0};
  }
  __device__ float* Output(const WgmmaPlan& plan, float* y, int m) const {
    return y + ((image * plan.M + m) * plan.H_out + first_row) * plan.W_out;
  }
  // WordInLine of Output, where that of y is `word`.
  __device__ int OutputInLine(const WgmmaPlan& plan, int word, int m) const {
    const uint32_t row =
        (static_cast<uint32_t>(image) * plan.M + m) * plan.H_out + first_row;
    return (word + row * plan.W_out) % 32;
  }
};

// Where filter m of a phase begins in the stage, in words. `target` is the
// WordInLine of the phase's first output: source and target of a copy are
// congruent modulo 128 bytes, so that the copy engine writes whole sectors.
__device__ __forceinline__ int StageOffset(const WgmmaPlan& plan, int target,
                                           int m) {
  return m * plan.stage_pitch +
         ((plan.merged
               ? target
               : target + static_cast<uint32_t>(m) * plan.H_out * plan.W_out) &
          31);
}

// What multipliers must know of a slab's conversion.
struct alignas(8) SlabScale {
  int exponent;  // or kNotScalable
  int lossy;     // whether some inputs are
};

// One block, as all its threads see it. Dynamic shared memory holds, in this
// order, ExponentBits of the filters; their biases, where outputs are pooled;
// the arranged filters; the halves of slab_buffers slabs, part by part;
// raw_buffers images as they came; and the stages.
template <int kShape>
struct Block {
  using C = WgmmaConstants<kShape>;

  __device__ __forceinline__ Block(const WgmmaPlan& of_plan, const float* of_x,
                                   float* of_y, uint4* shared,
                                   const uint64_t* barriers,
                                   SlabScale* of_slab_scales)
      : plan(of_plan),
        x(of_x),
        y(of_y),
        lane(threadIdx.x % 32),
        warp(__shfl_sync(0xffffffff, threadIdx.x / 32, 0)),
        slab_count(static_cast<int>(of_plan.slab_count())),
        filter_exponents(reinterpret_cast<uint32_t*>(shared)),
        bias(reinterpret_cast<float*>(filter_exponents +
                                      of_plan.exponent_words)),
        filters(shared + (of_plan.exponent_words + of_plan.bias_words) / 4),
        filter_vectors(of_plan.filter_bytes(C::kParts) / 16),
        slabs(reinterpret_cast<uint32_t*>(filters + filter_vectors)),
        raws(reinterpret_cast<float*>(slabs + of_plan.slab_buffers * C::kParts *
                                                  of_plan.slab_words)),
        stages(raws + of_plan.raw_buffers * of_plan.raw_words),
        slab_scales(of_slab_scales),
        full(SharedAddress(barriers)),
        empty(full + 8 * C::kMostBarriers),
        staged(empty + 8 * C::kMostBarriers),
        stored(staged + 8 * C::kMostBarriers),
        brought(stored + 8 * C::kMostBarriers),
        written(brought + 8 * C::kMostBarriers),
        slab_barriers(C::Barriers(of_plan.slab_buffers)),
        stage_barriers(C::Barriers(of_plan.stages)) {}

  const WgmmaPlan& plan;
  const float* x;
  float* y;
  int lane, warp;
  int slab_count;  // of the batch

  uint32_t* filter_exponents;
  float* bias;
  uint4* filters;
  int filter_vectors;
  uint32_t* slabs;
  float* raws;
  float* stages;
  SlabScale* slab_scales;  // of each buffer's slab

  // The first barrier of each kind; the others follow 8 bytes apart.
  //            completes when        who arrives       who waits
  //   full     a slab is converted   its converters    multipliers
  //   empty    a slab was read       multipliers       converters
  //   staged   outputs are staged    multipliers       the writer, and the
  //                                                    multipliers one turn
  //                                                    later
  //   stored   a stage was read      the writer        multipliers
  //   brought  an image has come     the copy engine   converters
  //   written  all is stored         the writer        multipliers that mend
  // Every thread arrives for itself, but at `written`, of which there is one,
  // the writer's first lane does.
  uint32_t full, empty, staged, stored, brought, written;
  int slab_barriers, stage_barriers;

  __device__ __forceinline__ uint32_t* SlabBuffer(int buffer) const {
    return slabs + buffer * C::kParts * plan.slab_words;
  }
  __device__ __forceinline__ Slab SlabAt(int index) const {
    return Slab::At<kShape>(plan, index);
  }
  __device__ __forceinline__ int OutputArea() const {
    return plan.H_out * plan.W_out;
  }

  // Called by all threads of the block, which synchronize at the end.
  __device__ __forceinline__ void Initialize() const {
    // Words that no slab reaches are multiplied by zeros, and must be finite.
    for (int i = threadIdx.x;
         i < plan.slab_buffers * C::kParts * plan.slab_words; i += blockDim.x) {
      slabs[i] = 0;
    }
    if (threadIdx.x == 0) {
      for (int i = 0; i < slab_barriers; ++i) {
        InitBarrier(full + 8 * i, C::kConverterThreads);
        InitBarrier(empty + 8 * i, C::kSlabThreads);
      }
      for (int i = 0; i < stage_barriers; ++i) {
        InitBarrier(staged + 8 * i, C::kSlabThreads);
        InitBarrier(stored + 8 * i, 32);
      }
      for (int i = 0; i < plan.raw_buffers; ++i) {
        InitBarrier(brought + 8 * i, 1);
      }
      InitBarrier(written, 1);
    }
  }
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_WGMMA_BLOCK_CUH_
