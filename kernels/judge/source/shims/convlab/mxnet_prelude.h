// Before a file of the MXNet era: the template that its GPU file specializes,
// and tensors round the memory of a call.
#ifndef CONVLAB_MXNET_PRELUDE_H_
#define CONVLAB_MXNET_PRELUDE_H_

#include "convlab/arguments.h"
#include "mxnet/base.h"

#ifdef CONVLAB_GPU
typedef mshadow::gpu ConvlabDevice;

namespace mxnet {
namespace op {
template <typename gpu, typename DType>
void forward(mshadow::Tensor<gpu, 4, DType>& y,
             const mshadow::Tensor<gpu, 4, DType>& x,
             const mshadow::Tensor<gpu, 4, DType>& w);
}  // namespace op
}  // namespace mxnet
#else
typedef mshadow::cpu ConvlabDevice;
#endif

typedef mshadow::Tensor<ConvlabDevice, 4, float> ConvlabTensor;

struct ConvlabTensorsOfCall {
  explicit ConvlabTensorsOfCall(ConvlabCall* call) {
#ifdef CONVLAB_GPU
    stream.stream_ = static_cast<cudaStream_t>(call->stream);
    float *px = call->device_x, *pk = call->device_k, *py = call->device_y;
#else
    float *px = convlab_host_x(call), *pk = convlab_host_k(call),
          *py = call->host_y;
#endif
    const int out_height = call->height - call->kernel_size + 1;
    const int out_width = call->width - call->kernel_size + 1;
    x = ConvlabTensor(
        px,
        mshadow::Shape4(call->batch, call->channels, call->height, call->width),
        &stream);
    k = ConvlabTensor(pk,
                      mshadow::Shape4(call->filters, call->channels,
                                      call->kernel_size, call->kernel_size),
                      &stream);
    y = ConvlabTensor(
        py, mshadow::Shape4(call->batch, call->filters, out_height, out_width),
        &stream);
  }

  mshadow::Stream<ConvlabDevice> stream;
  ConvlabTensor x, k, y;
};

#endif  // CONVLAB_MXNET_PRELUDE_H_
