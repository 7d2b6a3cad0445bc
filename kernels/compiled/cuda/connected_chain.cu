// Fully connected layers one after another, as one kernel.
//
// Idea. The layers behind the convolutions of small networks have so few
// weights that one after another they cost more starts and ends of kernels, and
// partial sums through memory, than arithmetic. A block takes 16 images through
// all of them, or 32 if the layers are so narrow that half of its warps are
// enough for 16; what lies between two layers is in shared memory.
//
// Products. As in layers/cuda/matrix.cu: inputs come in chunks of 64, a row's
// chunk has its own power of two, three products of halves replace one of
// floats, and a chunk's sums are taken out of the tensor cores. A warp has
// every eighth tile of 8 outputs, or every fourth. It reads its weights, packed
// in the lanes' order, from the second-level cache to registers, a chunk ahead
// of the products, also from one layer to the next; images are split once for
// all warps.
//
// The order of sums does not depend on how many images there are.
//
// Cost. LeNet-5: 59,000 weights, 236 KB as halves, which every block reads.
//
// Bound. That traffic, and the waits of a chain of chunks. So two blocks share
// a multiprocessor: 16 images are few for so many weights, but 32 would leave
// half of the multiprocessors without a second block.
#include "common/math/rounding.h"
#include "kernels/compiled/cuda/connected_chain.cuh"
#include "kernels/compiled/cuda/connected_chain.h"
#include "kernels/convolution/cuda/lib/launch.h"

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
  static_assert(kMostChainOutputs <= 2 * kChainWarps * kMatrixTile);
  const auto launch = tiles <= kChainWarps / 2 ? Launch<2, 1>
                      : tiles <= kChainWarps   ? Launch<1, 1>
                                               : Launch<1, 2>;
  return launch(chain, images, in, out, stream);
}

}  // namespace convlab::cuda
