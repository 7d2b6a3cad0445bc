// A direct kernel that computes a tile of outputs per thread in registers. The
// sizes of the tile are compiled in, and a sweep on the GPU chose them.
//
// Idea. A block keeps a tile of one image in shared memory: all columns, some
// rows, and all input channels if they fit. A thread computes `filters` filters
// at `columns` neighbouring columns in each of `rows` rows, in registers. For
// each row of the filter it loads columns + K - 1 inputs once and uses them for
// all K taps of that row: no gathering, and K times fewer loads of inputs than
// the implicit matrix product of register_tiled.
//
// Change against register_tiled
// - K and the register tile are known to the compiler. All other sizes are
//   run-time values, so that any layer is taken.
// - Blocks stay on the GPU and go from image to image: filters are loaded once,
//   and the next image's inputs are copied to a second buffer (cp.async) while
//   this one is computed.
// - With one input channel the weights are in constant memory. All threads of a
//   warp need the same weight at the same time, and the multiply-add takes it
//   as a uniform operand, so that weights cost neither loads nor registers. A
//   thread computes all filters of its positions, one group after another.
//
// What the sweep decides (//tools/sweep shows it for any layer)
// - filters x rows x columns of a thread: fewer loads per multiply-add, against
//   registers and so against warps that hide each other's latencies; and the
//   padding of M, H and W.
// - columns: four of them are one 16-byte store if the rows' length allows it.
// - threads of a block, and so rows of a tile: the rows that two tiles share
// are
//   loaded twice, and a smaller block leaves room for others.
//
// Cost. The tensors' own bytes, and K - 1 rows again for each further tile. Per
// filter row, a thread with 6 filters and 2 x 4 columns (K = 5) issues 240
// multiply-adds and 19 vector loads, or 4 with constant weights.
//
// Bound. The issue of multiply-adds on second layers; first layers need about
// the same time for arithmetic and for writing the output.
// docs/journal/direct_tiled.md tells what was measured and tried.
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
  DirectTiled(const Problem& problem, const Epilogue&)
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
      arranged_.Reserve(sizeof(float) * kConstantFloats);
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
    RETURN_IF_FAILED(Arrange(k, arranged_.as<float>(), stream));
    return RunArranged(plan, x, arranged_.as<float>(), y, turn, stream);
  }

  // Filters that stay are arranged once. In constant memory they cannot stay:
  // there they take turns with others'.
  int64_t filter_bytes() const override {
    return tile().constant_filters
               ? static_cast<int64_t>(sizeof(float)) * arranged_count()
               : 0;
  }
  Error PrepareFilters(const float* k, void* filters,
                       cudaStream_t stream) override {
    return Arrange(k, static_cast<float*>(filters), stream);
  }
  Error RunPrepared(const float* x, const void* filters, float* y,
                    cudaStream_t stream) override {
    DirectPlan plan = plan_;
    SetVectors(x, y, tile(), /*most_floats=*/4, &plan);
    ConstantMemoryTurn turn(turns, stream);
    RETURN_IF_FAILED(turn.Begin());
    return RunArranged(plan, x, static_cast<const float*>(filters), y, turn,
                       stream);
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

  int taps() const { return plan_.C * plan_.K * plan_.K; }
  // With those that fill the last group.
  int arranged_count() const {
    return RoundUp(plan_.M, tile().filters) * taps();
  }

  Error Arrange(const float* k, float* arranged, cudaStream_t stream) {
    constexpr int kArrangeThreads = 256;
    const int count = arranged_count();
    ArrangeConstantFiltersKernel<<<CeilDivide(count, kArrangeThreads),
                                   kArrangeThreads, 0, stream>>>(
        k, arranged, plan_.M, taps(), tile().filters, count);
    return CheckLaunch("ArrangeConstantFiltersKernel");
  }

  // By arranged filters, which go to constant memory in this turn.
  Error RunArranged(const DirectPlan& plan, const float* x,
                    const float* arranged, float* y, ConstantMemoryTurn& turn,
                    cudaStream_t stream) {
    RETURN_IF_CUDA_ERROR(cudaMemcpyToSymbolAsync(
        constant_filters, arranged, sizeof(float) * arranged_count(), 0,
        cudaMemcpyDeviceToDevice, stream));
    RETURN_IF_FAILED(Launch(plan, x, arranged, y, stream));
    return turn.End();
  }

  int instance_;
  DirectPlan plan_ = {};
  DirectLaunch launch_;
  // The filters on their way to constant memory.
  Workspace arranged_{memory_};
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
