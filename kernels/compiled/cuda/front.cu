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
// two of six filters, whose windows two lanes have.
//
// Shape of the launch. A warp keeps the filters of a group, at most six, in
// registers. A block has four warps, for one group or for two side by side;
// four or five blocks share a multiprocessor, and each goes through as many
// images as there are. While one enlarges, another multiplies. For few images,
// an image is cut into strips.
//
// Cost. fa19 on 10,000 images: 26.1 GFLOP, as products with two halves and
// zeros 102 GFLOP; 7.8 MB read, 523 MB written; 131 million tanh.
//
// Bound. Instructions: 20,400 of a warp for each image, of which an eighth are
// products, while writing takes 0.12 ms on an H200 and the products 0.175 ms
// at one mma.m16n8k16 in 6.5 cycles of a multiprocessor's quarter. The result
// is written as floats, not as the two halves that the matrix behind it
// multiplies: that is as many bytes, and the convolutions that stand there in
// other networks read floats.
#include "common/math/rounding.h"
#include "kernels/compiled/cuda/front.cuh"
#include "kernels/compiled/cuda/front.h"
#include "kernels/convolution/cuda/lib/launch.h"

namespace convlab::cuda {
namespace {

using Kernel = void (*)(const uint8_t*, const uint4*, const FrontScale*, float*,
                        FrontLaunch);

template <int kSteps>
Kernel KernelOf(int tiles) {
  return tiles == 2 ? FrontKernel<kSteps, 2> : FrontKernel<kSteps, 3>;
}

// The factors and biases stand behind the vectors.
FrontScale* ScalesOf(const FrontShape& shape, void* packed) {
  return reinterpret_cast<FrontScale*>(static_cast<uint4*>(packed) +
                                       shape.vectors());
}

}  // namespace

bool RunsFront() {
  return RejectWithoutTensorCores(
             reinterpret_cast<const void*>(KernelOf<3>(3))) == nullptr;
}

int64_t PackedFrontBytes(const FrontShape& shape) {
  return shape.vectors() * sizeof(uint4) +
         shape.padded_filters() * sizeof(FrontScale);
}

Error LaunchPackFront(const FrontShape& shape, const float* filters,
                      const float* bias, void* packed) {
  PackFrontKernel<<<shape.padded_filters(), 128>>>(
      filters, bias, static_cast<uint4*>(packed), ScalesOf(shape, packed),
      shape);
  return CheckLaunch("PackFrontKernel");
}

Error LaunchFront(const FrontLaunch& launch, const uint8_t* images,
                  const void* packed, float* out, cudaStream_t stream) {
  const FrontShape& shape = launch.shape;
  const Kernel kernel =
      shape.steps == 3 ? KernelOf<3>(shape.tiles) : KernelOf<4>(shape.tiles);
  const dim3 grid(launch.blocks, shape.groups / launch.wide);
  kernel<<<grid, kFrontThreads, launch.shared_bytes(), stream>>>(
      images, static_cast<const uint4*>(packed),
      ScalesOf(shape, const_cast<void*>(packed)), out, launch);
  return CheckLaunch("FrontKernel");
}

}  // namespace convlab::cuda
