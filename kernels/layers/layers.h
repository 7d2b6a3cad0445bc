// The layers around the convolutions, on the CPU. All tensors are row-major
// float32 and of the sizes stated; sizes are positive.
#ifndef KERNELS_LAYERS_LAYERS_H_
#define KERNELS_LAYERS_LAYERS_H_

#include <cstdint>

#include "common/network/network.h"
#include "common/parallel/parallel.h"

namespace convlab {

// Applies the activation to `count` values in place. tanh is Eigen's rational
// approximation, which errs by less than 5e-7 (layers_test.cc).
void Activate(Activation activation, int64_t count, float* values,
              Workers& workers);

// Max pooling of `planes` images of size x size into images of
// pool.Output(size) squared. A window that sticks out (pool.ceil) takes the
// maximum of what is inside. NaN in a window is handed on. pool.size > 0.
void PoolMax(const MaxPool& pool, int64_t planes, int64_t size, const float* in,
             float* out, Workers& workers);

// out[b,o] = bias[o] + sum over i of in[b,i] * weight[o,i], with in of
// batch x inputs, weight of outputs x inputs and out of batch x outputs.
void FullyConnected(int64_t batch, int64_t inputs, int64_t outputs,
                    const float* in, const float* weight, const float* bias,
                    float* out, Workers& workers);

// Each of `batch` rows of `classes` values becomes exp(value) over the row's
// sum of them, in place; the row's maximum is subtracted first.
void Softmax(int64_t batch, int64_t classes, float* values);

}  // namespace convlab

#endif  // KERNELS_LAYERS_LAYERS_H_
