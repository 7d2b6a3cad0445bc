// Behind a file with GPUInterface::conv_forward_gpu on tensors of the host.

static GPUInterface convlab_gpu;

static void convlab_op(struct ConvlabCall* convlab_call) {
  convlab_begin_op(convlab_call);
  convlab_gpu.conv_forward_gpu(
      convlab_host_y(convlab_call), convlab_host_x(convlab_call),
      convlab_host_k(convlab_call), CONVLAB_SIZES(convlab_call));
  convlab_end_op();
}

CONVLAB_EXPORT const struct ConvlabKernel* convlab_kernel(void) {
  static const struct ConvlabKernel convlab_table = {CONVLAB_KERNEL_ABI,
                                                     CONVLAB_INTERFACE_NAME,
                                                     1,
                                                     CONVLAB_HOST_TENSORS,
                                                     0,
                                                     0,
                                                     convlab_op,
                                                     0,
                                                     convlab_report};
  return &convlab_table;
}
