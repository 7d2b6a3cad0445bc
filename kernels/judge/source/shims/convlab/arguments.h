// Included before a contributed file: what the adapter behind it needs. The
// file may define macros of any common name, so the adapter's own text behind
// the file uses no name but these, which all begin with "convlab".
#ifndef CONVLAB_ARGUMENTS_H_
#define CONVLAB_ARGUMENTS_H_

#include "convlab/abi.h"

static inline float* convlab_host_x(const ConvlabCall* call) {
  return const_cast<float*>(call->host_x);
}
static inline float* convlab_host_k(const ConvlabCall* call) {
  return const_cast<float*>(call->host_k);
}
static inline float* convlab_host_y(const ConvlabCall* call) {
  return call->host_y;
}
static inline float** convlab_device_x(ConvlabCall* call) {
  return &call->device_x;
}
static inline float** convlab_device_k(ConvlabCall* call) {
  return &call->device_k;
}
static inline float** convlab_device_y(ConvlabCall* call) {
  return &call->device_y;
}
static inline void* convlab_stream(const ConvlabCall* call) {
  return call->stream;
}

static inline int convlab_b(const ConvlabCall* call) { return call->batch; }
static inline int convlab_c(const ConvlabCall* call) { return call->channels; }
static inline int convlab_h(const ConvlabCall* call) { return call->height; }
static inline int convlab_w(const ConvlabCall* call) { return call->width; }
static inline int convlab_m(const ConvlabCall* call) { return call->filters; }
static inline int convlab_s(const ConvlabCall* call) { return call->stride; }
static inline int convlab_ksize(const ConvlabCall* call) {
  return call->kernel_size;
}

// The sizes in the order of mini-dnn's functions.
#ifdef CONVLAB_STRIDE
#define CONVLAB_SIZES(call)                                           \
  convlab_b(call), convlab_m(call), convlab_c(call), convlab_h(call), \
      convlab_w(call), convlab_ksize(call), convlab_s(call)
#else
#define CONVLAB_SIZES(call)                                           \
  convlab_b(call), convlab_m(call), convlab_c(call), convlab_h(call), \
      convlab_w(call), convlab_ksize(call)
#endif

#define CONVLAB_EXPORT extern "C" __attribute__((visibility("default")))

#endif  // CONVLAB_ARGUMENTS_H_
