// Fully connected layers one after another, as one kernel.
//
// Idea. The layers behind the convolutions of small networks have so few
// weights that one after another they cost more starts and ends of kernels, and
// partial sums through memory, than arithmetic. A block takes 32 images through
// all of them; what lies between two layers is in shared memory.
//
// Products. As in layers/cuda/matrix.cu: inputs come in chunks of 64, a row's
// chunk has its own power of two, three products of halves replace one of
// floats, and a chunk's sums are taken out of the tensor cores. A warp has 16
// images and every fourth tile of 8 outputs. It reads its weights, packed in
// the lanes' order, from the second-level cache to registers, a chunk ahead of
// the products; images are split once for all warps.
//
// The order of sums does not depend on how many images there are.
//
// Cost. LeNet-5: 59,000 weights, 236 KB as halves, which every block reads.
//
// Bound. That traffic, and the waits of a chain of chunks that few warps share.
#include "common/math/rounding.h"
#include "kernels/compiled/cuda/connected_chain.cuh"
#include "kernels/compiled/cuda/connected_chain.h"
#include "kernels/convolution/cuda/lib/launch.h"

namespace convlab::cuda {
namespace {

template <int kTiles>
Error Launch(const Chain& chain, int64_t images, const float* in, float* out,
             cudaStream_t stream) {
  const auto kernel = ChainKernel<kTiles>;
  const auto* const address = reinterpret_cast<const void*>(kernel);
  RETURN_IF_FAILED(AllowAllSharedMemory(address));
  const bool vector = chain.layers[0].shape.inputs % 4 == 0 &&
                      reinterpret_cast<uintptr_t>(in) % 16 == 0;
  return LaunchOverlapping("ChainKernel", kernel, MayOverlap(address),
                           CeilDivide(images, kChainRows), kChainThreads,
                           kChainSharedBytes, stream, chain, images, in, out,
                           vector);
}

}  // namespace

bool TakesChainLayer(int64_t inputs, int64_t outputs, MatrixShape* shape) {
  return inputs <= kMostChainInputs && outputs <= kMostChainOutputs &&
         MakeMatrixShape(inputs, outputs, shape);
}

bool RunsChain() {
  return RejectWithoutTensorCores(
             reinterpret_cast<const void*>(ChainKernel<1>)) == nullptr;
}

Error LaunchChain(const Chain& chain, int64_t images, const float* in,
                  float* out, cudaStream_t stream) {
  int64_t tiles = 0;
  for (int i = 0; i < chain.count; ++i) {
    tiles = max(tiles, chain.layers[i].shape.tiles);
  }
  constexpr int kWarpsWide = kChainThreads / 32 / 2;
  if (tiles <= kWarpsWide) return Launch<1>(chain, images, in, out, stream);
  if (tiles <= 2 * kWarpsWide) return Launch<2>(chain, images, in, out, stream);
  return Launch<4>(chain, images, in, out, stream);
}

}  // namespace convlab::cuda
