// The parameter sweep: a direct kernel whose tile sizes are template
// parameters, and the instance of it that a sweep found to be the fastest.
//
// Idea. A block keeps a strip of one image (all columns, some rows, all input
// channels if they fit) in shared memory. A thread computes a register tile of
// outputs: `filters` filters by `columns` neighbouring columns in each of
// `rows` rows. For each row of the filter it loads columns + K - 1 inputs once
// and uses them for all K taps of that row, sliding the window over registers:
// no gathering, and K times fewer loads of inputs than the implicit matrix
// product has.
//
// Change against register_tiled
// - No gathering, and sizes known to the compiler where it pays: K and the
//   register tile. All others stay run-time values, so any layer is taken.
// - Blocks stay and go from image to image: the filters are loaded once, and
//   the next image's inputs are copied to a second buffer (cp.async) while this
//   one is computed.
// - With one input channel a thread computes all filters of its positions, one
//   group after another, with the weights in constant memory: every thread of
//   a warp needs the same weight at the same time, and the multiply-add takes
//   it from a uniform register, so that weights cost neither shared-memory
//   loads nor registers.
//
// What the sweep decides (//tools/sweep shows it for any layer)
// - filters x rows x columns of a thread: fewer loads per multiply-add against
//   registers, so against warps that hide each other's waiting; and the padding
//   of M, H and W. 29 columns are 4 x 8 with 10 % waste.
// - columns: four of them are one 16-byte store where the rows' length allows.
// - threads of a block, so rows of a strip: what two strips share is loaded
//   twice, and a smaller block leaves room for others.
//
// Cost. The tensors' own bytes, and K - 1 rows again for each further strip.
// Per filter row, a thread with 6 filters and 2 x 4 columns (K = 5) issues 240
// multiply-adds beside 19 vector loads, or 4 with constant weights.
//
// Bound. The multiply-add units on second layers; on first layers they and the
// writing of the output need about the same time.
//
// Measured on one H200, batch 10,000: fa17 0.45 ms, fa18 1.31 and 6.32, sp19
// 0.19 and 0.44, fa19 0.80 and 3.53, fa20 0.76 and 2.00: 31 to 39 TFLOP/s, of
// 67 that the data sheet promises, and 1.6 to 11.6 times as fast as cuDNN's
// fp32.
//
// Counters (ncu, fa19's layers). Fullest are the issue slots, 78 and 80 % used;
// the multiply-add pipes are 55 and 68 % busy, of which the definition's FLOPs
// need 49 and 52 (at 1.98 GHz) and padding most of the rest; DRAM is 60 and 8 %
// busy. Warps are ready: the longest stall is not selected (2.8 and 2.0 cycles
// per instruction) at 33 and 23 % occupancy. On the first layer neither
// arithmetic nor memory is full, and barriers come next (1.0).
//
// What did not help
// - Constant weights with several channels: fa19's second layer took 4.21 ms at
//   best. A block of threads that compute all filters has a larger tile, and
//   fewer of these fit into shared memory.
// - Unrolling the rows of the filter with weights in shared memory: the
//   compiler fetches all rows ahead and runs out of registers.
// - Finding a tile's place (64-bit divisions) per tile, and each input's place
//   (multiplications) per input: fa19's first layer took 1.29 ms. Blocks that
//   keep their place, and offsets that are counted along, made it 0.80.
// - Tiles of two columns, whose stores are consecutive where rows are 66 wide:
//   they load more often, 1.03 ms.
#include <cstdint>
#include <utility>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/direct/direct_tiled.cuh"
#include "kernels/convolution/cuda/direct/direct_tiled.h"
#include "kernels/convolution/cuda/direct/instances.h"
#include "kernels/convolution/cuda/direct/launch.h"
#include "kernels/convolution/cuda/lib/constant_memory.h"
#include "kernels/convolution/cuda/lib/kernel.h"
#include "kernels/convolution/cuda/lib/launch.h"

namespace convlab::cuda {
namespace {

// The users of constant_filters take turns.
ConstantMemoryTurns turns;

using KernelPointer = void (*)(const float*, const float*, float*, DirectPlan);

struct KernelTable {
  KernelPointer kernels[kDirectTiledInstanceCount];
};

// The kernels of kDirectTiledInstances, in the same order.
template <int... kIndices>
constexpr KernelTable MakeKernelTable(std::integer_sequence<int, kIndices...>) {
  return {{DirectTiledKernel<
      kDirectTiledInstances[kIndices].kernel_size,
      kDirectTiledInstances[kIndices].tile.filters,
      kDirectTiledInstances[kIndices].tile.rows,
      kDirectTiledInstances[kIndices].tile.columns,
      kDirectTiledInstances[kIndices].tile.threads,
      kDirectTiledInstances[kIndices].tile.constant_filters>...}};
}
constexpr KernelTable kTable = MakeKernelTable(
    std::make_integer_sequence<int, kDirectTiledInstanceCount>());

class DirectTiled : public Kernel {
 public:
  // Of the instance that is the best choice for the problem,
  explicit DirectTiled(const Problem& problem)
      : DirectTiled(problem, kBestInstance) {}
  // or of this one.
  DirectTiled(const Problem& problem, int instance)
      : Kernel(problem), instance_(instance) {}

  Error Prepare() override {
    DeviceLimits limits;
    RETURN_IF_FAILED(AskLimits(&limits));
    if (instance_ == kBestInstance) {
      instance_ = ChooseDirectTiled(problem_, limits, &plan_);
      if (instance_ < 0) return {"DirectTiled::Prepare", "no tile fits"};
    } else if (!MakeDirectTiledPlan(kDirectTiledInstances[instance_], problem_,
                                    limits, &plan_)) {
      return {"DirectTiled::Prepare", "the instance does not take the problem"};
    }
    if (tile().constant_filters) {
      RETURN_IF_FAILED(arranged_.Allocate(sizeof(float) * kConstantFloats));
    }
    return PrepareDirectLaunch(kTable.kernels[instance_], limits, plan_,
                               &launch_);
  }

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    DirectPlan plan = plan_;
    SetVectors(x, y, tile(), /*most_floats=*/4, &plan);
    if (!tile().constant_filters) return Launch(plan, x, k, y, stream);
    ConstantMemoryTurn turn(turns, stream);
    RETURN_IF_FAILED(turn.Begin());
    RETURN_IF_FAILED(CopyToConstantMemory(k, stream));
    RETURN_IF_FAILED(Launch(plan, x, k, y, stream));
    return turn.End();
  }

  Error Usage(DirectTiledUsage* usage) const {
    cudaFuncAttributes attributes;
    RETURN_IF_CUDA_ERROR(
        cudaFuncGetAttributes(&attributes, kTable.kernels[instance_]));
    int threads_per_multiprocessor = 0;
    RETURN_IF_FAILED(AskDevice(cudaDevAttrMaxThreadsPerMultiProcessor,
                               &threads_per_multiprocessor));
    usage->threads = plan_.block_threads();
    usage->registers = attributes.numRegs;
    usage->spill_bytes = attributes.localSizeBytes;
    usage->shared_bytes = plan_.shared_bytes;
    usage->blocks = launch_.blocks_per_multiprocessor;
    usage->occupancy = static_cast<double>(launch_.blocks_per_multiprocessor) *
                       plan_.block_threads() / threads_per_multiprocessor;
    usage->padding = Padding(tile(), plan_);
    return {};
  }

 private:
  static constexpr int kBestInstance = -1;

  const DirectTile& tile() const {
    return kDirectTiledInstances[instance_].tile;
  }

  Error Launch(const DirectPlan& plan, const float* x, const float* k, float* y,
               cudaStream_t stream) {
    kTable.kernels[instance_]<<<launch_.blocks, plan.block_threads(),
                                plan.shared_bytes, stream>>>(x, k, y, plan);
    return CheckLaunch("DirectTiledKernel");
  }

  Error CopyToConstantMemory(const float* k, cudaStream_t stream) {
    constexpr int kArrangeThreads = 256;
    const int filters = tile().filters;
    const int taps = plan_.C * plan_.K * plan_.K;
    const int count = RoundUp(plan_.M, filters) * taps;
    float* const arranged = arranged_.as<float>();
    ArrangeConstantFiltersKernel<<<CeilDivide(count, kArrangeThreads),
                                   kArrangeThreads, 0, stream>>>(
        k, arranged, plan_.M, taps, filters, count);
    RETURN_IF_FAILED(CheckLaunch("ArrangeConstantFiltersKernel"));
    RETURN_IF_CUDA_ERROR(cudaMemcpyToSymbolAsync(
        constant_filters, arranged, sizeof(float) * count, 0,
        cudaMemcpyDeviceToDevice, stream));
    return {};
  }

  int instance_;
  DirectPlan plan_ = {};
  DirectLaunch launch_;
  Workspace arranged_;  // the filters on their way to constant memory
};

const char* Reject(const Problem& problem) {
  DeviceLimits limits;
  DirectPlan plan;
  // A device that cannot be asked fails in Prepare, with the reason.
  if (AskLimits(&limits).failed()) return nullptr;
  return ChooseDirectTiled(problem, limits, &plan) < 0 ? kTileTooLarge
                                                       : nullptr;
}

}  // namespace

Kernel* MakeDirectTiledInstance(int instance, const Problem& problem,
                                Error* error) {
  Kernel* const kernel = new DirectTiled(problem, instance);
  *error = kernel->Prepare();
  return kernel;
}

Error AskDirectTiledUsage(int instance, const Problem& problem,
                          DirectTiledUsage* usage) {
  DirectTiled kernel(problem, instance);
  RETURN_IF_FAILED(kernel.Prepare());
  return kernel.Usage(usage);
}

extern const KernelVariant kDirectTiled;
const KernelVariant kDirectTiled = {
    "direct_tiled",
    AccuracyClass::kFp32,
    Track::kProduction,
    "Direct convolution from shared memory with a register tile per thread, "
    "its sizes and the place of the filters chosen by a sweep on the GPU.",
    "No gathering: a loaded row of inputs serves all taps of a filter row, "
    "copies overlap with arithmetic, and the tile's shape fits the layer.",
    Reject,
    Make<DirectTiled>,
    EstimateDirectTiledNs,
};

}  // namespace convlab::cuda
