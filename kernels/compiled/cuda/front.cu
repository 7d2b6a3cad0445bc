// The front of a network: enlarging, convolution, bias, pooling and activation.
//
// Idea. The images come as 28 x 28 bytes. Each is enlarged in shared memory,
// convolved on the tensor cores, pooled in registers, and only the pooled
// result is written: a quarter of the convolution's, and nothing else moves.
//
// Exactness. Enlarged pixels are integers up to 255, which halves hold. So only
// the filters are split into two halves, each scaled by a power of two of its
// own, and two products replace one of floats.
//
// Shape of a product. A row is one pooled position, and the four outputs of its
// window are four columns, with the filter shifted by a row, a column, or both.
// They read the same pixels, which therefore are loaded once for four outputs
// of all filters: lanes read words of two pixels at even columns, from rows
// that need no arrangement. Two positions one below the other share most of
// their rows, too. Pooling is a maximum of a lane's own sums, but for the last
// two of a warp's six filters, whose windows two lanes have.
//
// Kernels. By warpgroups (front_warpgroups.cuh), where the GPU has their
// products, images are many, and there are 9 to 12 filters or up to 4: a
// product has 64 positions and all filters. A block computes whole images. An
// image's results lie side by side in memory, so they are collected in shared
// memory, which the copy engine writes while the block enlarges its next image.
// By warps (front.cuh) otherwise: a warp keeps the filters of a group, at most
// six, in registers; a block has four warps, for one group or for two side by
// side, and few images are cut into strips. In both, several blocks share a
// multiprocessor, and while one enlarges, another multiplies; the bytes of a
// block's next image are on their way while it multiplies. All give the same
// bits.
//
// Cost. fa19 on 10,000 images: 26.1 GFLOP, as products with two halves and
// zeros 102 GFLOP; 7.8 MB read, 523 MB written; 131 million tanh.
//
// Bound. By warpgroups instructions: 17,900 of a warp for each image of fa19,
// which issue in 57 % of the cycles (H200). Lanes that stored the results
// themselves wrote 1.35 TB/s in all networks, even without enlarging: a warp's
// store has 32 bytes of each of four filters, which begin anywhere and touch
// two sectors of memory each. The result is written as floats, not as the two
// halves that the matrix behind it multiplies: that is as many bytes, and the
// convolutions that stand there in other networks read floats.
#include "common/math/rounding.h"
#include "kernels/compiled/cuda/front.cuh"
#include "kernels/compiled/cuda/front.h"
#include "kernels/compiled/cuda/front_warpgroups.cuh"
#include "kernels/convolution/cuda/lib/launch.h"
#include "kernels/convolution/cuda/lib/tensor_cores.h"

namespace convlab::cuda {
namespace {

using Kernel = void (*)(const uint8_t*, const uint4*, const FrontScale*, float*,
                        FrontLaunch);

template <int kSteps>
Kernel KernelOf(const FrontLaunch& launch) {
  if (launch.shape.warpgroups) {
    return launch.shape.tiles == 2 ? FrontWarpgroupKernel<kSteps, 2>
                                   : FrontWarpgroupKernel<kSteps, 6>;
  }
  return launch.shape.tiles == 2 ? FrontKernel<kSteps, 2>
                                 : FrontKernel<kSteps, 3>;
}

}  // namespace

Error AskFront(bool* runs) {
  return AskTensorCores(reinterpret_cast<const void*>(FrontKernel<3, 3>), runs);
}

bool RunsFrontOfWarpgroups() {
  return RejectWithoutWarpgroupProducts(reinterpret_cast<const void*>(
             FrontWarpgroupKernel<3, 6>)) == nullptr;
}

int64_t PackedFrontBytes(const FrontShape& shape) {
  return shape.vectors() * sizeof(uint4) +
         shape.padded_filters() * sizeof(FrontScale);
}

Error LaunchPackFront(const FrontShape& shape, const float* filters,
                      const float* bias, void* packed) {
  PackFrontKernel<<<shape.padded_filters(), 128>>>(
      filters, bias, static_cast<uint4*>(packed), FrontScalesOf(shape, packed),
      shape);
  return CheckLaunch("PackFrontKernel");
}

Error LaunchFront(const FrontLaunch& launch, const uint8_t* images,
                  const void* packed, float* out, cudaStream_t stream) {
  const FrontShape& shape = launch.shape;
  const Kernel kernel =
      shape.steps == 3 ? KernelOf<3>(launch) : KernelOf<4>(launch);
  RETURN_IF_FAILED(AllowAllSharedMemory(reinterpret_cast<const void*>(kernel)));
  const dim3 grid(launch.blocks, shape.groups / launch.wide);
  kernel<<<grid, launch.threads, launch.shared_bytes(), stream>>>(
      images, static_cast<const uint4*>(packed),
      FrontScalesOf(shape, const_cast<void*>(packed)), out, launch);
  return CheckLaunch("FrontKernel");
}

}  // namespace convlab::cuda
