// What course files use of MXNet: its tensors, and the headers that came with
// it.
#ifndef CONVLAB_MXNET_BASE_H_
#define CONVLAB_MXNET_BASE_H_

#include <mshadow/tensor.h>

namespace mxnet {
typedef mshadow::cpu cpu;
typedef mshadow::gpu gpu;
typedef mshadow::index_t index_t;
}  // namespace mxnet

#endif  // CONVLAB_MXNET_BASE_H_
