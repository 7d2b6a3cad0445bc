// Behind a file with conv_forward_cpu.

static void convlab_op(struct ConvlabCall* convlab_call) {
  conv_forward_cpu(convlab_host_y(convlab_call), convlab_host_x(convlab_call),
                   convlab_host_k(convlab_call), CONVLAB_SIZES(convlab_call));
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
