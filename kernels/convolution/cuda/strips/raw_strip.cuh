// How a warpgroup of wgmma_strips brings the inputs of a strip: whole vectors
// of 16 bytes by the copy engine, while the strip before is multiplied, and
// what is left at the ends by threads, when the strip is wanted. They are a
// part of the warpgroup's own shared memory.
#ifndef KERNELS_CONVOLUTION_CUDA_STRIPS_RAW_STRIP_CUH_
#define KERNELS_CONVOLUTION_CUDA_STRIPS_RAW_STRIP_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/convolution/cuda/lib/division.h"
#include "kernels/convolution/cuda/lib/ptx.cuh"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/convolution/cuda/strips/strips.cuh"
#include "kernels/convolution/cuda/strips/wgmma_plan.h"

namespace convlab::cuda {

#if __CUDA_ARCH_FEAT_SM90_ALL

constexpr uint32_t kAllLanes = 0xffffffff;
constexpr int kWarpgroupThreads = 128;

// The 128 threads that multiply together.
class Warpgroup {
 public:
  // `most` is shared memory of the warpgroup's own.
  __device__ __forceinline__ Warpgroup(uint32_t (*most)[4])
      : index_(__shfl_sync(kAllLanes, threadIdx.x / kWarpgroupThreads, 0)),
        thread_(threadIdx.x % kWarpgroupThreads),
        most_(most) {}
  __device__ __forceinline__ int thread() const { return thread_; }

  __device__ __forceinline__ void Sync() const {
    SyncGroup(1 + index_, kWarpgroupThreads);
  }

  // The largest v of all threads, which all call it.
  __device__ __forceinline__ uint32_t Largest(uint32_t v) {
    v = __reduce_max_sync(kAllLanes, v);
    // Two sets of maxima take turns, so that nobody has to wait for a warp that
    // still reads those of the last call.
    uint32_t* const most = most_[turn_];
    turn_ ^= 1;
    if (thread_ % 32 == 0) most[thread_ / 32] = v;
    Sync();
    return max(max(most[0], most[1]), max(most[2], most[3]));
  }

 private:
  int index_, thread_, turn_ = 0;
  uint32_t (*most_)[4];
};

// Where a thread stands in its warpgroup.
struct WarpgroupLane {
  int lane, warp;
  int g, t;  // lane 4 * g + t

  __device__ __forceinline__ explicit WarpgroupLane(int thread)
      : lane(thread % 32),
        warp(__shfl_sync(kAllLanes, thread / 32, 0)),
        g(lane / 4),
        t(lane % 4) {}
};

// The inputs of a strip and a channel as whole vectors of 16 bytes, which the
// copy engine takes, and what is left before and after them.
struct Vectors {
  const float* from;
  int inputs;
  int skew;  // where the first float stands among those of a vector
  int head;  // floats before the first vector

  __device__ __forceinline__ Vectors(const WgmmaStripsPlan& plan,
                                     const StripItem& item, int c)
      : from(item.from + c * plan.area()),
        inputs(item.inputs),
        skew(static_cast<int>(reinterpret_cast<uintptr_t>(from) / 4 % 4)),
        head(min(-skew & 3, inputs)) {}
  __device__ __forceinline__ const float* first() const { return from + head; }
  __device__ __forceinline__ int bytes() const {
    return ((inputs - head) & ~3) * 4;
  }
  __device__ __forceinline__ int tail() const { return head + bytes() / 4; }
  __device__ __forceinline__ bool whole() const {
    return bytes() == inputs * 4;
  }
};

// Where the two inputs of word i of a padded strip stand among those of the
// strip in memory, and which of them exist.
struct PaddedWord {
  int element;
  bool first, second;

  __device__ __forceinline__ PaddedWord(const WgmmaStripsPlan& plan,
                                        const StripItem& item, int i) {
    const auto width = static_cast<unsigned>(plan.inset.width);
    const int row = Divide(i, plan.pitch_magic);
    const int column = 2 * (i - row * plan.pitch) - plan.inset.left;
    const int begin = (row - item.above) * plan.inset.width;
    const bool exists =
        static_cast<unsigned>(begin) < static_cast<unsigned>(item.inputs);
    element = begin + column;
    first = exists && static_cast<unsigned>(column) < width;
    second = exists && static_cast<unsigned>(column + 1) < width;
  }
  // The word of a channel whose inputs begin at `from`.
  __device__ __forceinline__ float2 Load(const float* from) const {
    return {first ? from[element] : 0.f, second ? from[element + 1] : 0.f};
  }
};

// Word i of a strip and a channel whose inputs begin at `from`.
template <bool kPadded>
__device__ __forceinline__ float2 LoadRawWord(const WgmmaStripsPlan& plan,
                                              const StripItem& item,
                                              const float* from,
                                              WordLoads loads, int i) {
  if constexpr (kPadded) {
    return PaddedWord(plan, item, i).Load(from);
  } else {
    return LoadWord(plan, item, from, loads, i);
  }
}

// A strip's inputs as they come from memory: planes of the channels, in which
// the first input stands among those of a vector as it does in x.
struct RawStrip {
  float* at;         // in shared memory
  uint32_t brought;  // the barrier of their arrival

  __device__ __forceinline__ const float* Plane(const WgmmaStripsPlan& plan,
                                                const StripItem& item,
                                                int c) const {
    return at + c * plan.raw_plane + Vectors(plan, item, c).skew;
  }

  // Starts to bring channel c. One thread for each channel calls this when
  // nobody reads the strip before any more.
  __device__ __forceinline__ void Bring(const WgmmaStripsPlan& plan,
                                        const StripItem& item, int c) const {
    const Vectors in(plan, item, c);
    if (in.bytes() == 0) return Arrive(brought);
    FenceAsyncProxy();
    StartLoad(SharedAddress(at + c * plan.raw_plane + in.skew + in.head),
              in.first(), in.bytes(), brought);
  }

  // Adds what the copy engine left out at the ends, of each channel by eight
  // threads, and waits for it. All threads of the warpgroup call this.
  __device__ __forceinline__ void Complete(const WgmmaStripsPlan& plan,
                                           const StripItem& item,
                                           const Warpgroup& warpgroup) const {
    bool whole = true;
    for (int c = 0; c < plan.C; ++c) whole &= Vectors(plan, item, c).whole();
    if (whole) return;
    constexpr int kPart = 8;
    static_assert(WgmmaStripsMostChannels(kWgmmaStripsLeastKernelSize) *
                      kPart <=
                  kWarpgroupThreads);
    const int c = warpgroup.thread() / kPart;
    const int part = warpgroup.thread() % kPart;
    if (c < plan.C && part < 6) {
      const Vectors in(plan, item, c);
      const int i = part < in.head ? part : in.tail() + part - 3;
      if ((part < in.head || part >= 3) && i < in.inputs) {
        at[c * plan.raw_plane + in.skew + i] = in.from[i];
      }
    }
    warpgroup.Sync();
  }

  // Calls put(i, word) for every word i of the strip that is the thread's.
  template <bool kPadded, typename Put>
  __device__ __forceinline__ void ForWords(const WgmmaStripsPlan& plan,
                                           const StripItem& item, int words,
                                           WordLoads loads, int thread,
                                           const Put& put) const {
    WithLoads(loads, [&](auto constant) {
      for (int c = 0; c < plan.C; ++c) {
        const float* const from = Plane(plan, item, c);
        const int first = c * plan.plane_words;
#pragma unroll 4
        for (int i = thread; i < words; i += kWarpgroupThreads) {
          put(SlabWord{first + i},
              LoadRawWord<kPadded>(plan, item, from, constant, i),
              std::false_type());
        }
      }
    });
  }
};

// A warpgroup's own shared memory.
struct WarpgroupMemory {
  float* stage;
  RawStrip raw;
  uint32_t* high;  // the slab's high halves; low ones plan.slab_words on

  __device__ __forceinline__ WarpgroupMemory(const WgmmaStripsPlan& plan,
                                             uint32_t* own, uint64_t* brought)
      : stage(reinterpret_cast<float*>(own)),
        raw{stage + plan.stage_words, SharedAddress(brought)},
        high(reinterpret_cast<uint32_t*>(raw.at) + plan.raw_words) {}

  // Writes zeros to the whole slab, also where no strip puts inputs: units that
  // reach beyond a row's end multiply those by zero.
  __device__ __forceinline__ void ClearSlab(const WgmmaStripsPlan& plan,
                                            int thread) const {
    for (int i = thread; i < 2 * plan.slab_words; i += kWarpgroupThreads) {
      high[i] = 0;
    }
  }
};

#endif

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_STRIPS_RAW_STRIP_CUH_
