// Behind a file with convolution(...) without a stream.

static void convlab_op(struct ConvlabCall* convlab_call) {
  convolution(convlab_host_x(convlab_call), convlab_host_k(convlab_call),
              convlab_host_y(convlab_call), convlab_b(convlab_call),
              convlab_c(convlab_call), convlab_h(convlab_call),
              convlab_w(convlab_call), convlab_m(convlab_call),
              convlab_ksize(convlab_call));
}

CONVLAB_EXPORT const struct ConvlabKernel* convlab_kernel(void) {
  static const struct ConvlabKernel convlab_table = {CONVLAB_KERNEL_ABI,
                                                     CONVLAB_INTERFACE_NAME,
                                                     0,
                                                     CONVLAB_HOST_TENSORS,
                                                     0,
                                                     0,
                                                     convlab_op,
                                                     0,
                                                     0};
  return &convlab_table;
}
