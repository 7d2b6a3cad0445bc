// Behind a file with GPUInterface::conv_forward_gpu and its prolog and epilog.

// One object from the prolog to the epilog: it may have members.
static GPUInterface convlab_gpu;

static void convlab_prolog(struct ConvlabCall* convlab_call) {
  convlab_gpu.conv_forward_gpu_prolog(
      convlab_host_y(convlab_call), convlab_host_x(convlab_call),
      convlab_host_k(convlab_call), convlab_device_y(convlab_call),
      convlab_device_x(convlab_call), convlab_device_k(convlab_call),
      CONVLAB_SIZES(convlab_call));
}

static void convlab_op(struct ConvlabCall* convlab_call) {
  convlab_begin_op(convlab_call);
  convlab_gpu.conv_forward_gpu(
      *convlab_device_y(convlab_call), *convlab_device_x(convlab_call),
      *convlab_device_k(convlab_call), CONVLAB_SIZES(convlab_call));
  convlab_end_op();
}

static void convlab_epilog(struct ConvlabCall* convlab_call) {
  convlab_gpu.conv_forward_gpu_epilog(
      convlab_host_y(convlab_call), *convlab_device_y(convlab_call),
      *convlab_device_x(convlab_call), *convlab_device_k(convlab_call),
      CONVLAB_SIZES(convlab_call));
}

CONVLAB_EXPORT const struct ConvlabKernel* convlab_kernel(void) {
  static const struct ConvlabKernel convlab_table = {CONVLAB_KERNEL_ABI,
                                                     CONVLAB_INTERFACE_NAME,
                                                     1,
                                                     CONVLAB_HOST_TENSORS,
                                                     0,
                                                     convlab_prolog,
                                                     convlab_op,
                                                     convlab_epilog,
                                                     convlab_report};
  return &convlab_table;
}
