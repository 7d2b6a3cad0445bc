// The fully connected layer on tensor cores: a matrix product of images x
// inputs by inputs x outputs with float32's accuracy.
//
// Idea. Both factors are split into two halves each, and three products of
// halves replace one of floats (docs/numerics.md). The weights are scaled,
// split and put into the lanes' order once, when they are loaded. The images
// are floats: splitting them in advance would save no byte, since two halves
// are as long as a float. They pass through shared memory as they are, and a
// lane splits what it multiplies.
//
// Range. A row's 64 inputs of a chunk have a power of two of their own, so that
// images of any scale can stand beside each other. The sums of a chunk are
// taken out of the tensor cores, which cut off what they add, multiplied by the
// inverse, and added in float32.
//
// Splitting the sum. 10,000 images are 79 blocks of 128, too few for a GPU. A
// block computes one group of 16 chunks, or with few images one chunk, and
// writes partial sums. FinishMatrixKernel adds them up, in an order that does
// not depend on which of the two it was, and does what follows the layer: the
// bias, the activation, and small layers behind it.
//
// Cost. fa19's folded matrix, 13068 x 160, on 10,000 images: three products of
// 41.8 GFLOP, 0.52 GB of inputs, 83 MB of partial sums, twice.
//
// Kernels. For few images one chunk a block, all of it in registers; for many
// by warps; and for many by warpgroups, where the GPU has them: a warpgroup
// loads chunks ahead, and two others split and multiply in turns. All give the
// same bits.
//
// Bound. None alone. A block of 128 images asks the second-level cache for 73
// KB in each chunk, 32 KB of images and 41 of weights. While fa19's 5,000
// images take 138 us, the products would take 70, and reading the images 61;
// ncu counts 56 % of the tensor cores' time and 58 % of the cache's tags.
//
// Tried (H200) while shared memory began at no multiple of 128 bytes: blocks in
// pairs that load their weights once for both (multicast). No byte less was
// read, and it took longer. Groups side by side in the grid, so that fewer
// blocks read the same weights at the same time: no difference.
#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/tensor_cores.h"
#include "kernels/convolution/cuda/lib/wgmma_ptx.cuh"
#include "kernels/layers/cuda/launches.h"
#include "kernels/layers/cuda/matrix_finish.cuh"
#include "kernels/layers/cuda/matrix_pack.cuh"
#include "kernels/layers/cuda/matrix_product.cuh"
#include "kernels/layers/cuda/matrix_warpgroups.cuh"

namespace convlab::cuda {
namespace {

bool IsAligned(const void* p, int bytes) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

template <int kTiles>
Error LaunchMany(const MatrixLaunch& launch, const float* in,
                 const uint32_t* words, float* partial, cudaStream_t stream) {
  const auto kernel = ManyRowsKernel<kTiles>;
  RETURN_IF_FAILED(AllowAllSharedMemory(reinterpret_cast<const void*>(kernel)));
  const dim3 grid(launch.row_blocks, launch.column_blocks, launch.units);
  const bool vector = launch.shape.inputs % 4 == 0 && launch.pitch % 4 == 0 &&
                      IsAligned(in, 16);
  kernel<<<grid, kManyThreads, ManySharedBytes(kManyWarpsWide * kTiles),
           stream>>>(in, words, vector, partial, launch);
  return CheckLaunch("ManyRowsKernel");
}

template <int kTiles>
Error LaunchWarpgroups(const MatrixLaunch& launch, const float* in,
                       const uint32_t* words, float* partial,
                       cudaStream_t stream) {
  const auto kernel = WarpgroupRowsKernel<kTiles>;
  RETURN_IF_FAILED(AllowAllSharedMemory(reinterpret_cast<const void*>(kernel)));
  const dim3 grid(launch.row_blocks, launch.column_blocks, launch.units);
  kernel<<<grid, kWarpgroupThreads, WarpgroupSharedBytes(kTiles), stream>>>(
      in, words, partial, launch);
  return CheckLaunch("WarpgroupRowsKernel");
}

Error LaunchFew(const MatrixLaunch& launch, const float* in,
                const uint32_t* words, float* partial, cudaStream_t stream) {
  const int64_t blocks =
      launch.row_blocks * launch.column_blocks * launch.units;
  const bool pairs =
      launch.shape.inputs % 2 == 0 && launch.pitch % 2 == 0 && IsAligned(in, 8);
  return LaunchOverlapping(
      "FewRowsKernel", FewRowsKernel,
      MayOverlap(reinterpret_cast<const void*>(FewRowsKernel)), blocks,
      kFewThreads, 0, stream, in, words, pairs, partial, launch);
}

Error LaunchProduct(const MatrixLaunch& launch, const float* in,
                    const uint32_t* words, float* partial,
                    cudaStream_t stream) {
  const auto run = [&](auto function) {
    return function(launch, in, words, partial, stream);
  };
  switch (launch.kernel) {
    case MatrixKernel::kFew:
      return run(LaunchFew);
    case MatrixKernel::kMany:
      switch (launch.block_tiles / kManyWarpsWide) {
        case 2:
          return run(LaunchMany<2>);
        case 4:
          return run(LaunchMany<4>);
        case 8:
          return run(LaunchMany<8>);
        case 9:
          return run(LaunchMany<9>);
        default:
          return run(LaunchMany<10>);
      }
    default:
      switch (launch.block_tiles) {
        case 4:
          return run(LaunchWarpgroups<4>);
        case 10:
          return run(LaunchWarpgroups<10>);
        case 12:
          return run(LaunchWarpgroups<12>);
        case 16:
          return run(LaunchWarpgroups<16>);
        default:
          return run(LaunchWarpgroups<20>);
      }
  }
}

}  // namespace

Error AskMatrix(bool* runs) {
  return AskTensorCores(reinterpret_cast<const void*>(FewRowsKernel), runs);
}

bool RunsMatrixOfWarpgroups(int64_t inputs, int64_t pitch, const float* in) {
  return inputs % 4 == 0 && pitch % 4 == 0 && IsAligned(in, 16) &&
         RejectWithoutWarpgroupProducts(reinterpret_cast<const void*>(
             WarpgroupRowsKernel<kWarpgroupTiles[0]>)) == nullptr;
}

Error LaunchPackMatrix(const MatrixShape& shape, const float* weight,
                       float* packed) {
  PackMatrixKernel<<<shape.columns(), 256>>>(weight, packed, shape);
  return CheckLaunch("PackMatrixKernel");
}

Error LaunchMatrix(const MatrixLaunch& launch, const FinishLaunch& finish,
                   const float* in, const float* packed,
                   const ConnectedLayers& layers, float* out, float* partial,
                   cudaStream_t stream) {
  const auto* const words =
      reinterpret_cast<const uint32_t*>(packed + launch.shape.columns());
  RETURN_IF_FAILED(LaunchProduct(launch, in, words, partial, stream));
  return LaunchOverlapping(
      "FinishMatrixKernel", FinishMatrixKernel,
      MayOverlap(reinterpret_cast<const void*>(FinishMatrixKernel)),
      finish.image_blocks() * finish.output_blocks(), finish.threads,
      finish.shared_bytes(), stream, partial, packed, out, finish, layers);
}

}  // namespace convlab::cuda
