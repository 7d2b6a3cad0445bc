// Fully connected layers one after another, as one kernel.
//
// Idea. The layers behind the convolutions of small networks have so few
// weights that one after another they cost more starts and ends of kernels, and
// partial sums through memory, than arithmetic. A block takes 16 to 40 images
// through all of them; what lies between two layers is in shared memory.
//
// Products. As in layers/cuda/matrix.cu: inputs come in chunks of 64, a row's
// chunk has its own power of two, three products of halves replace one of
// floats, and a chunk's sums are taken out of the tensor cores. Images are
// split once for all that multiply.
//
// By warpgroups. On GPUs that have their products (compute capability 9.0),
// outputs are the rows of a product and images its columns, both in shared
// memory. So a warpgroup reads the weights of 64 outputs once for all images
// of the block, where a warp that had images for rows read them for 16. One
// thread has the copy engine load chunks of weights as far ahead as there is
// room, from one layer to the next; some warps load and split images, and apply
// the activation of the layer before; and one or two warpgroups multiply, each
// for its outputs. Images come by asynchronous copies, each thread's own, a few
// chunks ahead. Where F16 holds all weights of all layers, low halves are
// zeros, which are neither loaded nor multiplied.
//
// By warps. Other GPUs, and images that begin at no multiple of 16 bytes, take
// eight warps, each of which reads its weights from the second-level cache to
// registers, a chunk ahead of the products. Both kernels give the same bits.
//
// The order of sums does not depend on how many images there are.
//
// Cost. LeNet-5: 59,000 weights, 236 KB as two halves each, which every block
// reads; half of that without low halves.
//
// Bound. That traffic, and the waits between two layers.
#include "common/math/rounding.h"
#include "kernels/compiled/cuda/connected_chain.cuh"
#include "kernels/compiled/cuda/connected_chain.h"
#include "kernels/compiled/cuda/connected_chain_pack.cuh"
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

template <int kGroups, int kRows, int kParts>
Error LaunchStreamed(const Chain& chain, const ChainStream& streamed,
                     int64_t images, const float* in, float* out,
                     cudaStream_t stream) {
  const auto kernel = StreamedChainKernel<kGroups, kRows, kParts>;
  const auto* const address = reinterpret_cast<const void*>(kernel);
  RETURN_IF_FAILED(AllowAllSharedMemory(address));
  return LaunchOverlapping(
      "StreamedChainKernel", kernel, true, CeilDivide(images, kRows),
      ChainStream::Threads(kGroups, kRows), streamed.shared_bytes(), stream,
      chain, streamed, images, in, out);
}

// False if the current device has no code for it, or images begin elsewhere
// than at multiples of 16 bytes.
bool MakeStream(const Chain& chain, int64_t images, const float* in,
                ChainStream* stream) {
  DeviceLimits limits;
  if (chain.layers[0].shape.inputs % 4 != 0 ||
      reinterpret_cast<uintptr_t>(in) % 16 != 0 ||
      RejectWithoutWarpgroupProducts(reinterpret_cast<const void*>(
          StreamedChainKernel<1, kStreamRows[0], 2>)) != nullptr ||
      AskLimits(&limits).failed()) {
    return false;
  }
  MatrixShape shapes[kMostChainLayers];
  int parts = 1;
  for (int i = 0; i < chain.count; ++i) {
    shapes[i] = chain.layers[i].shape;
    if (chain.layers[i].high == nullptr) parts = 2;
  }
  return MakeChainStream(shapes, chain.count, parts, images, limits, stream);
}

using Streamed = Error (*)(const Chain&, const ChainStream&, int64_t,
                           const float*, float*, cudaStream_t);

template <int kGroups, int kRows>
Streamed StreamedOf(const ChainStream& streamed) {
  return streamed.parts == 1 ? LaunchStreamed<kGroups, kRows, 1>
                             : LaunchStreamed<kGroups, kRows, 2>;
}
template <int kGroups>
Streamed StreamedOf(const ChainStream& streamed) {
  return streamed.rows == kStreamRows[0]
             ? StreamedOf<kGroups, kStreamRows[0]>(streamed)
             : StreamedOf<kGroups, kStreamRows[1]>(streamed);
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

Error LaunchKeepHighHalves(const MatrixShape& shape, const float* packed,
                           uint32_t* high, uint32_t* lost) {
  constexpr int kThreads = 256;
  const int64_t count = shape.words() / 2;
  KeepHighHalvesKernel<<<CeilDivide(count, int64_t{kThreads}), kThreads>>>(
      reinterpret_cast<const uint32_t*>(packed + shape.columns()), count, high,
      lost);
  return CheckLaunch("KeepHighHalvesKernel");
}

Error LaunchChain(const Chain& chain, int64_t images, const float* in,
                  float* out, cudaStream_t stream) {
  int64_t tiles = 0;
  for (int i = 0; i < chain.count; ++i) {
    tiles = max(tiles, chain.layers[i].shape.tiles);
  }
  ChainStream streamed;
  if (MakeStream(chain, images, in, &streamed)) {
    static_assert(kMostChainOutputs <= 2 * kStreamOutputs);
    const Streamed launch = streamed.groups == 1 ? StreamedOf<1>(streamed)
                                                 : StreamedOf<2>(streamed);
    return launch(chain, streamed, images, in, out, stream);
  }
  // Layers that need no more warps are done as soon by blocks of few threads,
  // several of which share a multiprocessor.
  static_assert(kMostChainOutputs <= 2 * kChainWarps * kMatrixTile);
  const auto launch = tiles <= kChainWarps / 2 ? Launch<2, 1>
                      : tiles <= kChainWarps   ? Launch<1, 1>
                                               : Launch<1, 2>;
  return launch(chain, images, in, out, stream);
}

}  // namespace convlab::cuda
