// The layers around the convolutions, on the GPU: the counterparts of
// kernels/layers/layers.h, with the same meaning. Every pointer is to device
// memory, every tensor row-major, sizes are positive. A function queues its
// work in a stream, null being the default one, and need not wait for the end;
// its status says whether the work could be started.
#ifndef KERNELS_LAYERS_CUDA_LAYERS_H_
#define KERNELS_LAYERS_CUDA_LAYERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/network/layer.h"
#include "kernels/layers/cuda/connected_layers.h"
#include "kernels/layers/cuda/plane_bias.h"

struct CUstream_st;  // cudaStream_t is a pointer to one

namespace convlab::cuda {

// Enlarges `count` images of size x size bytes to enlarged x enlarged, byte for
// byte as EnlargeImages (common/dataset/resize.h), and converts the bytes to
// floats. Images that have the size already are only converted. `enlarged` is
// at most 2048: sums are computed in 32 bits.
absl::Status EnlargeToFloats(const uint8_t* images, int64_t count, int size,
                             int enlarged, float* out,
                             CUstream_st* stream = nullptr);

// AddBias of layers.h. `channels` and `area` are below 2^31.
absl::Status AddBias(int64_t batch, int64_t channels, int64_t area,
                     const float* bias, float* values,
                     CUstream_st* stream = nullptr);

// Applies the activation to `count` values in place. tanh errs by 2 ulp at
// most (CUDA C++ Programming Guide, mathematical functions).
absl::Status Activate(Activation activation, int64_t count, float* values,
                      CUstream_st* stream = nullptr);

// PoolMax of layers.h followed by the bias and the activation: both are
// monotonic, so the maximum may be taken first, and a pooled image needs far
// fewer of them.
absl::Status PoolMax(const MaxPool& pool, Activation activation, int64_t planes,
                     int64_t size, const float* in, float* out,
                     CUstream_st* stream = nullptr, const PlaneBias& bias = {});

// The floats of a fully connected layer's weights [outputs, inputs] as
// FullyConnected reads them on the current device, and how they become so. They
// are complete when PackWeights returns, since a product may read them before
// what was queued before it has ended.
absl::StatusOr<int64_t> PackedFloats(int64_t inputs, int64_t outputs);
absl::Status PackWeights(int64_t inputs, int64_t outputs, const float* weight,
                         float* packed);

// FullyConnected of layers.h, followed by what `layers` says. `packed`, at a
// multiple of 16 bytes, is by PackWeights. `scratch`, at a multiple of 16
// bytes, is memory for up to scratch_floats partial sums, at best
// FullyConnectedScratch; it may be empty. An image's outputs do not depend on
// the others. They are NaN where the image has infinities or NaN.
// `pitch`, unless it is 0, is how many floats after an image's inputs the next
// one's begin, where TakesLayers accepts the layer and there is scratch memory.
absl::Status FullyConnected(int64_t batch, int64_t inputs, int64_t outputs,
                            const float* in, const float* packed,
                            const ConnectedLayers& layers, float* out,
                            float* scratch, int64_t scratch_floats,
                            CUstream_st* stream = nullptr, int64_t pitch = 0);
absl::StatusOr<int64_t> FullyConnectedScratch(int64_t batch, int64_t inputs,
                                              int64_t outputs);

// Whether FullyConnected takes these layers, or none, behind one of this size
// on tensor cores: otherwise it is called for each of them.
bool TakesLayers(int64_t inputs, int64_t outputs,
                 const ConnectedLayers& layers);

// Softmax of layers.h.
absl::Status Softmax(int64_t batch, int classes, float* values);

// Finds for each row the index of its largest value, the first of equal ones.
// At most 256 classes.
absl::Status Label(int64_t batch, int classes, const float* values,
                   uint8_t* labels, CUstream_st* stream = nullptr);

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_LAYERS_H_
