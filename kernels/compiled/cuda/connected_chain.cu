// Fully connected layers one after another, as one kernel.
//
// Idea. The layers behind the convolutions of small networks have so few
// weights that one after another they cost more starts and ends of kernels, and
// partial sums through memory, than arithmetic. A block takes 16 or 32 images
// through all of them; what lies between two layers is in shared memory.
//
// Products. As in layers/cuda/matrix.cu: inputs come in chunks of 64, a row's
// chunk has its own power of two, three products of halves replace one of
// floats, and a chunk's sums are taken out of the tensor cores. Images are
// split once for all warps.
//
// Loads. A chain with a layer of more than 64 outputs is computed by sixteen
// warps for 32 images, where the GPU has a copy engine (compute capability
// 9.0): one more warp has it load chunks of weights, and of the images, into a
// ring of places in shared memory, as far ahead as there is room, from one
// layer to the next. Narrower chains, other GPUs, and images that begin at no
// multiple of 16 bytes take eight warps, each of which reads its weights from
// the second-level cache to registers, a chunk ahead of the products. Both
// kernels give the same bits.
//
// The order of sums does not depend on how many images there are.
//
// Cost. LeNet-5: 59,000 weights, 236 KB as halves, which every block reads.
//
// Bound. That traffic, and the waits of a chain of chunks.
#include "common/math/rounding.h"
#include "kernels/compiled/cuda/connected_chain.cuh"
#include "kernels/compiled/cuda/connected_chain.h"
#include "kernels/compiled/cuda/connected_chain_stream.cuh"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"

namespace convlab::cuda {
namespace {

template <int kRowTiles, int kTiles>
Error Launch(const Chain& chain, int64_t images, const float* in, float* out,
             cudaStream_t stream) {
  constexpr int kRows = 16 * kRowTiles;
  const auto kernel = ChainKernel<kRowTiles, kTiles>;
  const auto* const address = reinterpret_cast<const void*>(kernel);
  RETURN_IF_FAILED(AllowAllSharedMemory(address));
  const bool vector = chain.layers[0].shape.inputs % 4 == 0 &&
                      reinterpret_cast<uintptr_t>(in) % 16 == 0;
  return LaunchOverlapping("ChainKernel", kernel, MayOverlap(address),
                           CeilDivide(images, kRows), kChainThreads,
                           ChainSharedBytes(kRows), stream, chain, images, in,
                           out, vector);
}

template <int kTiles>
Error LaunchStreamed(const Chain& chain, const ChainStream& streamed,
                     int64_t images, const float* in, float* out,
                     cudaStream_t stream) {
  const auto kernel = StreamedChainKernel<kTiles>;
  const auto* const address = reinterpret_cast<const void*>(kernel);
  RETURN_IF_FAILED(AllowAllSharedMemory(address));
  return LaunchOverlapping("StreamedChainKernel", kernel, true,
                           CeilDivide(images, kStreamRows), kStreamThreads,
                           streamed.shared_bytes(), stream, chain, streamed,
                           images, in, out);
}

// False if the current device has no code for it, or images begin elsewhere
// than at multiples of 16 bytes.
bool MakeChainStream(const Chain& chain, const float* in, ChainStream* stream) {
  DeviceLimits limits;
  if (chain.layers[0].shape.inputs % 4 != 0 ||
      reinterpret_cast<uintptr_t>(in) % 16 != 0 ||
      RejectWithoutWarpgroupProducts(
          reinterpret_cast<const void*>(StreamedChainKernel<2>)) != nullptr ||
      AskLimits(&limits).failed()) {
    return false;
  }
  *stream = {};
  for (int i = 0; i < chain.count; ++i) {
    const int tiles = static_cast<int>(chain.layers[i].shape.tiles);
    stream->weight_bytes = max(stream->weight_bytes, ChunkBytes(tiles));
  }
  // Beside what a block takes for itself: barriers, and 1 KB.
  constexpr int kOwnBytes = 2 * 8 * kStreamMostStages + (1 << 10);
  const int room = min(limits.shared_per_block,
                       limits.shared_per_multiprocessor - kOwnBytes) -
                   ChainStream::kStagesAt;
  stream->stages = min(room / stream->stage_bytes(), kStreamMostStages);
  return stream->stages > 1;
}

}  // namespace

bool TakesChainLayer(int64_t inputs, int64_t outputs, MatrixShape* shape) {
  return inputs <= kMostChainInputs && outputs <= kMostChainOutputs &&
         MakeMatrixShape(inputs, outputs, shape);
}

bool RunsChain() {
  return RejectWithoutTensorCores(
             reinterpret_cast<const void*>(ChainKernel<1, 1>)) == nullptr;
}

Error LaunchChain(const Chain& chain, int64_t images, const float* in,
                  float* out, cudaStream_t stream) {
  int64_t tiles = 0;
  for (int i = 0; i < chain.count; ++i) {
    tiles = max(tiles, chain.layers[i].shape.tiles);
  }
  // Layers that need no more warps are done as soon by blocks of few threads,
  // several of which share a multiprocessor.
  ChainStream streamed;
  if (tiles > kChainWarps && MakeChainStream(chain, in, &streamed)) {
    static_assert(kMostChainOutputs <= 2 * kStreamWarpsWide * kMatrixTile);
    return LaunchStreamed<2>(chain, streamed, images, in, out, stream);
  }
  static_assert(kMostChainOutputs <= 2 * kChainWarps * kMatrixTile);
  const auto launch = tiles <= kChainWarps / 2 ? Launch<2, 1>
                      : tiles <= kChainWarps   ? Launch<1, 1>
                                               : Launch<1, 2>;
  return launch(chain, images, in, out, stream);
}

}  // namespace convlab::cuda
