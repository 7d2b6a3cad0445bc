// cuDNN, opened at run time, for the files of this package.
#ifndef KERNELS_BASELINE_CUDNN_LIBRARY_H_
#define KERNELS_BASELINE_CUDNN_LIBRARY_H_

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/convolution/problem.h"
#include "kernels/cuda/device.h"

namespace convlab::cuda {

// The functions in use, and a handle.
struct Cudnn {
  decltype(cudnnGetErrorString)* get_error_string;
  decltype(cudnnCreate)* create;
  decltype(cudnnSetStream)* set_stream;
  decltype(cudnnCreateTensorDescriptor)* create_tensor;
  decltype(cudnnDestroyTensorDescriptor)* destroy_tensor;
  decltype(cudnnSetTensor4dDescriptor)* set_tensor;
  decltype(cudnnCreateFilterDescriptor)* create_filter;
  decltype(cudnnDestroyFilterDescriptor)* destroy_filter;
  decltype(cudnnSetFilter4dDescriptor)* set_filter;
  decltype(cudnnCreateConvolutionDescriptor)* create_convolution;
  decltype(cudnnDestroyConvolutionDescriptor)* destroy_convolution;
  decltype(cudnnSetConvolution2dDescriptor)* set_convolution;
  decltype(cudnnSetConvolutionMathType)* set_convolution_math_type;
  decltype(cudnnGetConvolutionForwardWorkspaceSize)* get_workspace_size;
  decltype(cudnnFindConvolutionForwardAlgorithmEx)* find_algorithm;
  decltype(cudnnConvolutionForward)* convolution_forward;
  decltype(cudnnCreateActivationDescriptor)* create_activation;
  decltype(cudnnDestroyActivationDescriptor)* destroy_activation;
  decltype(cudnnSetActivationDescriptor)* set_activation;
  decltype(cudnnActivationForward)* activation_forward;
  decltype(cudnnCreatePoolingDescriptor)* create_pooling;
  decltype(cudnnDestroyPoolingDescriptor)* destroy_pooling;
  decltype(cudnnSetPooling2dDescriptor)* set_pooling;
  decltype(cudnnPoolingForward)* pooling_forward;
  decltype(cudnnAddTensor)* add_tensor;
  decltype(cudnnSoftmaxForward)* softmax_forward;
  decltype(cudnnBackendCreateDescriptor)* create_backend;
  decltype(cudnnBackendDestroyDescriptor)* destroy_backend;
  decltype(cudnnBackendSetAttribute)* set_attribute;
  decltype(cudnnBackendGetAttribute)* get_attribute;
  decltype(cudnnBackendFinalize)* finalize;
  decltype(cudnnBackendExecute)* execute;
  cudnnHandle_t handle;
};

// The instance of the calling thread for its current device, which is never
// destroyed; a handle is for one thread at a time. Returns Unavailable without
// a GPU or the library; the next call tries again.
absl::StatusOr<const Cudnn*> OpenCudnn();

// Returns OK, ResourceExhausted, Unimplemented if cuDNN does not support the
// request, or Internal; the message is "`call`: " and the reason.
absl::Status CheckCudnn(cudnnStatus_t status, const char* call);

// Descriptors are pointers to opaque types, which the library's functions
// destroy.
template <typename Pointer>
using Descriptor =
    std::unique_ptr<std::remove_pointer_t<Pointer>, cudnnStatus_t (*)(Pointer)>;
using TensorDescriptor = Descriptor<cudnnTensorDescriptor_t>;
using FilterDescriptor = Descriptor<cudnnFilterDescriptor_t>;
using ConvolutionDescriptor = Descriptor<cudnnConvolutionDescriptor_t>;
using ActivationDescriptor = Descriptor<cudnnActivationDescriptor_t>;
using PoolingDescriptor = Descriptor<cudnnPoolingDescriptor_t>;

// A packed tensor. Unimplemented if a dimension, or the number of elements, is
// above 2^31 - 1: cuDNN counts them in 32 bits.
absl::StatusOr<TensorDescriptor> MakeTensor(cudnnTensorFormat_t format,
                                            cudnnDataType_t type, int64_t n,
                                            int64_t c, int64_t h, int64_t w);
absl::StatusOr<FilterDescriptor> MakeFilter(cudnnTensorFormat_t format,
                                            cudnnDataType_t type, int64_t m,
                                            int64_t c, int64_t h, int64_t w);
// The convolution of problem.h: stride 1, no padding, kernels not flipped, sums
// in float32.
absl::StatusOr<ConvolutionDescriptor> MakeConvolution(cudnnMathType_t math);
absl::StatusOr<ActivationDescriptor> MakeActivation(cudnnActivationMode_t mode);
// Max pooling without padding.
absl::StatusOr<PoolingDescriptor> MakePooling(int size, int stride);

// cuDNN's description of a convolution.
struct Forward {
  TensorDescriptor x;
  FilterDescriptor k;
  ConvolutionDescriptor convolution;
  TensorDescriptor y;
};
// Tensors and filters of `type` in `format`: for CUDNN_TENSOR_NHWC that is also
// M, K, K, C for the filters. Unimplemented as MakeTensor.
absl::StatusOr<Forward> DescribeForward(const Problem& problem,
                                        cudnnTensorFormat_t format,
                                        cudnnDataType_t type,
                                        cudnnMathType_t math);

// The workspace of an algorithm in bytes; Unimplemented if the algorithm does
// not support this convolution.
absl::StatusOr<int64_t> WorkspaceBytes(const Forward& forward,
                                       cudnnConvolutionFwdAlgo_t algorithm);

// Queues the convolution in `stream`. The workspace has at least
// WorkspaceBytes.
absl::Status RunForward(const Forward& forward,
                        cudnnConvolutionFwdAlgo_t algorithm, const void* x,
                        const void* k, void* y, const DeviceBuffer& workspace,
                        cudaStream_t stream = nullptr);

// "IMPLICIT_PRECOMP_GEMM"
const char* Name(cudnnConvolutionFwdAlgo_t algorithm);

}  // namespace convlab::cuda

// Returns from the enclosing function if the call, of a function of Cudnn, does
// not succeed. A macro because the error holds the call's text.
#define RETURN_IF_CUDNN_ERROR(call)                   \
  do {                                                \
    if (absl::Status returned_status =                \
            ::convlab::cuda::CheckCudnn(call, #call); \
        !returned_status.ok()) {                      \
      return returned_status;                         \
    }                                                 \
  } while (false)

#endif  // KERNELS_BASELINE_CUDNN_LIBRARY_H_
