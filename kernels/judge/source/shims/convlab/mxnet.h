// Behind a file of the MXNet era.

static void convlab_op(struct ConvlabCall* convlab_call) {
  ConvlabTensorsOfCall convlab_tensors(convlab_call);
  const ConvlabTensor& convlab_x = convlab_tensors.x;
  const ConvlabTensor& convlab_k = convlab_tensors.k;
#ifdef CONVLAB_GPU
  convlab_begin_op(convlab_call);
  mxnet::op::forward(convlab_tensors.y, convlab_x, convlab_k);
  convlab_end_op();
#else
  mxnet::op::forward(convlab_tensors.y, convlab_x, convlab_k);
#endif
}

CONVLAB_EXPORT const struct ConvlabKernel* convlab_kernel(void) {
#ifdef CONVLAB_GPU
  static const struct ConvlabKernel convlab_table = {CONVLAB_KERNEL_ABI,
                                                     CONVLAB_INTERFACE_NAME,
                                                     1,
                                                     CONVLAB_DEVICE_TENSORS,
                                                     1,
                                                     0,
                                                     convlab_op,
                                                     0,
                                                     convlab_report};
#else
  static const struct ConvlabKernel convlab_table = {CONVLAB_KERNEL_ABI,
                                                     CONVLAB_INTERFACE_NAME,
                                                     0,
                                                     CONVLAB_HOST_TENSORS,
                                                     1,
                                                     0,
                                                     convlab_op,
                                                     0,
                                                     0};
#endif
  return &convlab_table;
}
