// A convolution of few channels with bias, max pooling and activation: the
// second convolution of networks with a pooling behind it.
//
// Idea. Images are so small that a block of threads has whole ones in shared
// memory, several of them or one. They are read once and only pooled results
// are written, a sixteenth of the sums where windows are 4 x 4. While a block
// multiplies, its next images are on their way.
//
// Accuracy. Values are split into two halves, and three products replace one of
// floats. An image has a power of two of its own, found before it is split, and
// so has each filter. The small products have sums of their own. Values that
// halves lose bits of are counted while they are split; a result that may have
// suffered from them is computed by the definition instead (docs/numerics.md).
//
// Products. A row of pixels is a row of words of two channels, so that
// the words under a filter's row are one run of them, wherever it begins: no
// arrangement per position. 64 positions are the rows of a warpgroup's product,
// and the filters are its columns, once for a row of positions and once for the
// one below, which meets the same inputs one filter row later. Windows of 4 x 4
// have two such pairs.
//
// Pooling. A row may be any position, since lanes load their own. So the
// columns of a window are chosen to be rows of the same lane, and for windows
// of 4 x 4 of a second one beside it: the largest sum is found in registers,
// and a shuffle.
//
// For many images tensor_wgmma takes its place where it pools (gpu_steps.cc).
//
// Shape of the launch. As many blocks as the GPU runs at a time go through all
// items. How many images are an item, or how many strips one is, is decided by
// what is left over: half-filled products, and a last round of blocks. The
// results do not depend on it.
//
// Cost. fa20 on 10,000 images: 72.5 GFLOP, with three products, zeros in a
// filter's eighth column and row and half-filled tiles 0.29 TFLOP; 256 MB read,
// 52 MB written.
//
// Bound. Waiting, with three or four warpgroups on a multiprocessor, which have
// their turns of loading, products and finishing. The products would take 0.17
// ms for 5,000 images of fa20, which take 0.31 (H200).
#include "kernels/compiled/cuda/convolve_pool.h"
#include "kernels/compiled/cuda/convolve_pool_pack.cuh"
#include "kernels/compiled/cuda/convolve_pool_rows.cuh"
#include "kernels/convolution/cuda/lib/launch.h"

namespace convlab::cuda {
namespace {

PackedConvolvePool PartsOf(const ConvolvePoolShape& shape, const void* packed) {
  PackedConvolvePool parts;
  parts.scaled = static_cast<ScaledFilter*>(const_cast<void*>(packed));
  parts.vectors =
      reinterpret_cast<uint4*>(parts.scaled + shape.padded_filters());
  parts.filters = reinterpret_cast<float*>(parts.vectors + shape.vectors());
  parts.bias = parts.filters +
               static_cast<int64_t>(shape.problem.filters) * shape.weights();
  return parts;
}

// in [image][channel][row][column], out [image][filter][row][column]. `vector`:
// every image begins at a multiple of 16 bytes.
template <int kInstance>
__global__ void __launch_bounds__(kConvolvePoolThreads,
                                  kConvolvePoolInstances[kInstance].blocks)
    ConvolvePoolKernel(const float* in,
                       const __grid_constant__ PackedConvolvePool packed,
                       float* out, bool vector,
                       const __grid_constant__ ConvolvePoolLaunch launch) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  LetNextKernelStart();
  extern __shared__ __align__(16) char shared[];
  __shared__ ConvolvePoolFilter
      known[kConvolvePoolInstances[kInstance].filters()];
  ConvolvePoolRows<kInstance>(shared, known, packed, in, out, launch)
      .Run(shared, vector);
#endif
}

using Pointer = void (*)(const float*, PackedConvolvePool, float*, bool,
                         ConvolvePoolLaunch);
constexpr Pointer kKernels[] = {ConvolvePoolKernel<0>, ConvolvePoolKernel<1>};

}  // namespace

bool RunsConvolvePool(const ConvolvePoolShape& shape) {
  return RejectWithoutWarpgroupProducts(reinterpret_cast<const void*>(
             kKernels[shape.instance_number])) == nullptr;
}

int64_t PackedConvolvePoolBytes(const ConvolvePoolShape& shape) {
  // ScaledFilter has 12 bytes, of which there are multiples of 8.
  static_assert(8 * sizeof(ScaledFilter) % sizeof(uint4) == 0);
  return shape.padded_filters() * sizeof(ScaledFilter) +
         shape.vectors() * sizeof(uint4) +
         (static_cast<int64_t>(shape.problem.filters) * shape.weights() +
          shape.problem.filters) *
             sizeof(float);
}

Error LaunchPackConvolvePool(const ConvolvePoolShape& shape,
                             const float* filters, const float* bias,
                             void* packed) {
  PackConvolvePoolKernel<<<shape.padded_filters(), 128>>>(
      filters, bias, PartsOf(shape, packed), shape);
  return CheckLaunch("PackConvolvePoolKernel");
}

Error LaunchConvolvePool(const ConvolvePoolLaunch& launch, const float* in,
                         const void* packed, float* out, cudaStream_t stream) {
  const Pointer kernel = kKernels[launch.shape.instance_number];
  const auto* const address = reinterpret_cast<const void*>(kernel);
  RETURN_IF_FAILED(AllowAllSharedMemory(address));
  const bool vector = launch.shape.image_floats() % 4 == 0 &&
                      reinterpret_cast<uintptr_t>(in) % 16 == 0;
  return LaunchOverlapping("ConvolvePoolKernel", kernel, MayOverlap(address),
                           launch.blocks * launch.shape.groups,
                           kConvolvePoolThreads, launch.shared_bytes(), stream,
                           in, PartsOf(launch.shape, packed), out, vector,
                           launch);
}

}  // namespace convlab::cuda
