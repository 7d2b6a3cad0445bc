// Behind a file with convolution(..., cudaStream_t stream).

static void convlab_op(struct ConvlabCall* convlab_call) {
  convlab_begin_op(convlab_call);
  convolution(*convlab_device_x(convlab_call), *convlab_device_k(convlab_call),
              *convlab_device_y(convlab_call), convlab_b(convlab_call),
              convlab_c(convlab_call), convlab_h(convlab_call),
              convlab_w(convlab_call), convlab_m(convlab_call),
              convlab_ksize(convlab_call),
              static_cast<cudaStream_t>(convlab_stream(convlab_call)));
  convlab_end_op();
}

CONVLAB_EXPORT const struct ConvlabKernel* convlab_kernel(void) {
  static const struct ConvlabKernel convlab_table = {CONVLAB_KERNEL_ABI,
                                                     CONVLAB_INTERFACE_NAME,
                                                     1,
                                                     CONVLAB_DEVICE_TENSORS,
                                                     0,
                                                     0,
                                                     convlab_op,
                                                     0,
                                                     convlab_report};
  return &convlab_table;
}
