// The layers around the convolutions, on the CPU, with the vector instructions
// that kernels/simd/cpu_target.h chooses. All tensors are row-major float32 and
// of the sizes stated; sizes are positive.
#ifndef KERNELS_LAYERS_LAYERS_H_
#define KERNELS_LAYERS_LAYERS_H_

#include <cstdint>
#include <memory>

#include "common/network/layer.h"
#include "common/parallel/parallel.h"

namespace convlab {

// Enlarges `count` images of size x size bytes to enlarged x enlarged, byte for
// byte as EnlargeImages (common/dataset/resize.h), and converts the bytes to
// floats. Images that have the size already are only converted.
void EnlargeToFloats(const uint8_t* images, int64_t count, int size,
                     int enlarged, float* out, Workers& workers);

// Adds bias[c] to each of the `area` values of channel c of each image, where
// `values` is batch x channels x area and `bias` has one number per channel.
void AddBias(int64_t batch, int64_t channels, int64_t area, const float* bias,
             float* values, Workers& workers);

// Applies the activation to `count` values in place. tanh is Highway's, with an
// error below 3 ulp: over all floats at most 2.86, with AVX-512. NaN stays NaN.
void Activate(Activation activation, int64_t count, float* values,
              Workers& workers);

// Max pooling of `planes` images of size x size into images of
// pool.Output(size) squared, followed by the activation: activations are
// monotonic, so that the result is the same on fewer values, within tanh's
// error. A window that extends beyond the image (pool.ceil) takes the maximum
// of the part inside. NaN in a window is propagated. pool.size > 0.
void PoolMax(const MaxPool& pool, Activation activation, int64_t planes,
             int64_t size, const float* in, float* out, Workers& workers);

// What follows a convolution, applied on the calling thread to planes that are
// still in its cache: max pooling of `planes` planes of height x width from
// `in` to `out`, unless pool.size is 0 and both are the same; then bias[i] is
// added to the values of plane i, unless `bias` is null; then the activation.
void FinishPlanes(const MaxPool& pool, Activation activation, const float* bias,
                  int64_t planes, int64_t height, int64_t width,
                  const float* in, float* out);

// The weights [outputs, inputs] of a fully connected layer in the order in
// which FullyConnected reads them with the chosen instructions.
std::shared_ptr<const float> PackWeights(int64_t inputs, int64_t outputs,
                                         const float* weight, Workers& workers);

// out[b,o] = bias[o] + sum over i of in[b,i] * weight[o,i], with in of batch x
// inputs, out of batch x outputs, and the weights by PackWeights. `bias` may be
// null.
void FullyConnected(int64_t batch, int64_t inputs, int64_t outputs,
                    const float* in, const float* packed, const float* bias,
                    float* out, Workers& workers);

// Replaces each value of `batch` rows of `classes` values by exp(value) divided
// by the row's sum; the row's maximum is subtracted first.
void Softmax(int64_t batch, int64_t classes, float* values);

}  // namespace convlab

#endif  // KERNELS_LAYERS_LAYERS_H_
