#include "kernels/baseline/cudnn_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/cuda/cublas.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/library.h"

namespace convlab::cuda {
namespace {

std::mutex mutex;
const Cudnn* opened = nullptr;  // for good, once it has been

LibraryVersion Version(void* handle) {
  const auto get_version = reinterpret_cast<decltype(cudnnGetVersion)*>(
      dlsym(handle, "cudnnGetVersion"));
  if (get_version == nullptr) return {};
  const int version = get_version();  // 91900 for 9.19.0
  return {version / 10000, version / 100 % 100, version % 100};
}

absl::StatusOr<const Library*> OpenFile() {
  static_assert(CUDNN_MAJOR == 9, "the files below are cuDNN 9's");
  // libcudnn.so.9 opens the others when it first needs them.
  return OpenLibrary(
      {"cuDNN",
       "libcudnn.so.9",
       Version,
       {"libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9",
        "libcudnn_heuristic.so.9", "libcudnn_engines_precompiled.so.9",
        "libcudnn_engines_runtime_compiled.so.9"}});
}

absl::Status LoadFunctions(const Library& library, Cudnn& cudnn) {
  const auto load = [&](const char* name, auto& function) {
    return LoadFunction(library, name, function);
  };
  RETURN_IF_ERROR(load("cudnnGetErrorString", cudnn.get_error_string));
  RETURN_IF_ERROR(load("cudnnCreate", cudnn.create));
  RETURN_IF_ERROR(load("cudnnSetStream", cudnn.set_stream));
  RETURN_IF_ERROR(load("cudnnCreateTensorDescriptor", cudnn.create_tensor));
  RETURN_IF_ERROR(load("cudnnDestroyTensorDescriptor", cudnn.destroy_tensor));
  RETURN_IF_ERROR(load("cudnnSetTensor4dDescriptor", cudnn.set_tensor));
  RETURN_IF_ERROR(load("cudnnCreateFilterDescriptor", cudnn.create_filter));
  RETURN_IF_ERROR(load("cudnnDestroyFilterDescriptor", cudnn.destroy_filter));
  RETURN_IF_ERROR(load("cudnnSetFilter4dDescriptor", cudnn.set_filter));
  RETURN_IF_ERROR(
      load("cudnnCreateConvolutionDescriptor", cudnn.create_convolution));
  RETURN_IF_ERROR(
      load("cudnnDestroyConvolutionDescriptor", cudnn.destroy_convolution));
  RETURN_IF_ERROR(
      load("cudnnSetConvolution2dDescriptor", cudnn.set_convolution));
  RETURN_IF_ERROR(
      load("cudnnSetConvolutionMathType", cudnn.set_convolution_math_type));
  RETURN_IF_ERROR(load("cudnnGetConvolutionForwardWorkspaceSize",
                       cudnn.get_workspace_size));
  RETURN_IF_ERROR(
      load("cudnnFindConvolutionForwardAlgorithmEx", cudnn.find_algorithm));
  RETURN_IF_ERROR(load("cudnnConvolutionForward", cudnn.convolution_forward));
  RETURN_IF_ERROR(
      load("cudnnCreateActivationDescriptor", cudnn.create_activation));
  RETURN_IF_ERROR(
      load("cudnnDestroyActivationDescriptor", cudnn.destroy_activation));
  RETURN_IF_ERROR(load("cudnnSetActivationDescriptor", cudnn.set_activation));
  RETURN_IF_ERROR(load("cudnnActivationForward", cudnn.activation_forward));
  RETURN_IF_ERROR(load("cudnnCreatePoolingDescriptor", cudnn.create_pooling));
  RETURN_IF_ERROR(load("cudnnDestroyPoolingDescriptor", cudnn.destroy_pooling));
  RETURN_IF_ERROR(load("cudnnSetPooling2dDescriptor", cudnn.set_pooling));
  RETURN_IF_ERROR(load("cudnnPoolingForward", cudnn.pooling_forward));
  RETURN_IF_ERROR(load("cudnnAddTensor", cudnn.add_tensor));
  RETURN_IF_ERROR(load("cudnnSoftmaxForward", cudnn.softmax_forward));
  RETURN_IF_ERROR(load("cudnnBackendCreateDescriptor", cudnn.create_backend));
  RETURN_IF_ERROR(load("cudnnBackendDestroyDescriptor", cudnn.destroy_backend));
  RETURN_IF_ERROR(load("cudnnBackendSetAttribute", cudnn.set_attribute));
  RETURN_IF_ERROR(load("cudnnBackendGetAttribute", cudnn.get_attribute));
  RETURN_IF_ERROR(load("cudnnBackendFinalize", cudnn.finalize));
  return load("cudnnBackendExecute", cudnn.execute);
}

absl::Status CheckSize(std::initializer_list<int64_t> dimensions) {
  int64_t elements = 1;
  for (const int64_t dimension : dimensions) {
    if (dimension > std::numeric_limits<int>::max() / elements) {
      return absl::UnimplementedError(
          "cuDNN counts the elements of a tensor in 32 bits; this one has "
          "more than 2^31 - 1");
    }
    elements *= dimension;
  }
  return absl::OkStatus();
}

template <typename Pointer>
absl::StatusOr<Descriptor<Pointer>> Make(cudnnStatus_t (*create)(Pointer*),
                                         cudnnStatus_t (*destroy)(Pointer)) {
  Pointer descriptor = nullptr;
  RETURN_IF_CUDNN_ERROR(create(&descriptor));
  return Descriptor<Pointer>(descriptor, destroy);
}

}  // namespace

namespace {

// Returns the functions, without a handle.
absl::StatusOr<const Cudnn*> OpenFunctions() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (opened != nullptr) return opened;
  RETURN_IF_ERROR(FindDevice().status());
  // cuDNN opens cuBLAS by name when it needs it, and gets this copy. Without
  // cuBLAS the algorithms that need it report an error.
  (void)WhyNoCublas();
  ASSIGN_OR_RETURN(const Library* library, OpenFile());
  auto cudnn = std::make_unique<Cudnn>();
  RETURN_IF_ERROR(LoadFunctions(*library, *cudnn));
  opened = cudnn.release();
  return opened;
}

}  // namespace

absl::StatusOr<const Cudnn*> OpenCudnn() {
  ASSIGN_OR_RETURN(const Cudnn* functions, OpenFunctions());
  int device = 0;
  RETURN_IF_ERROR(ToStatus(Check(cudaGetDevice(&device), "cudaGetDevice")));
  // Never destroyed: the driver may be unloaded before the thread ends.
  thread_local auto& instances = *new std::map<int, Cudnn>;
  const auto found = instances.find(device);
  if (found != instances.end()) return &found->second;
  Cudnn cudnn = *functions;
  RETURN_IF_CUDNN_ERROR(cudnn.create(&cudnn.handle));
  return &instances.emplace(device, cudnn).first->second;
}

absl::Status CheckCudnn(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message =
      absl::StrCat(call, ": ", opened->get_error_string(status));
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) {
    return absl::UnimplementedError(message);
  }
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    return absl::ResourceExhaustedError(message);
  }
  return absl::InternalError(message);
}

absl::StatusOr<TensorDescriptor> MakeTensor(cudnnTensorFormat_t format,
                                            cudnnDataType_t type, int64_t n,
                                            int64_t c, int64_t h, int64_t w) {
  RETURN_IF_ERROR(CheckSize({n, c, h, w}));
  ASSIGN_OR_RETURN(auto tensor,
                   Make(opened->create_tensor, opened->destroy_tensor));
  RETURN_IF_CUDNN_ERROR(
      opened->set_tensor(tensor.get(), format, type, n, c, h, w));
  return tensor;
}

absl::StatusOr<FilterDescriptor> MakeFilter(cudnnTensorFormat_t format,
                                            cudnnDataType_t type, int64_t m,
                                            int64_t c, int64_t h, int64_t w) {
  RETURN_IF_ERROR(CheckSize({m, c, h, w}));
  ASSIGN_OR_RETURN(auto filter,
                   Make(opened->create_filter, opened->destroy_filter));
  RETURN_IF_CUDNN_ERROR(
      opened->set_filter(filter.get(), type, format, m, c, h, w));
  return filter;
}

absl::StatusOr<ConvolutionDescriptor> MakeConvolution(cudnnMathType_t math) {
  ASSIGN_OR_RETURN(auto convolution, Make(opened->create_convolution,
                                          opened->destroy_convolution));
  RETURN_IF_CUDNN_ERROR(opened->set_convolution(convolution.get(), 0, 0, 1, 1,
                                                1, 1, CUDNN_CROSS_CORRELATION,
                                                CUDNN_DATA_FLOAT));
  RETURN_IF_CUDNN_ERROR(
      opened->set_convolution_math_type(convolution.get(), math));
  return convolution;
}

absl::StatusOr<ActivationDescriptor> MakeActivation(
    cudnnActivationMode_t mode) {
  ASSIGN_OR_RETURN(auto activation,
                   Make(opened->create_activation, opened->destroy_activation));
  RETURN_IF_CUDNN_ERROR(
      opened->set_activation(activation.get(), mode, CUDNN_PROPAGATE_NAN, 0));
  return activation;
}

absl::StatusOr<PoolingDescriptor> MakePooling(int size, int stride) {
  ASSIGN_OR_RETURN(auto pooling,
                   Make(opened->create_pooling, opened->destroy_pooling));
  RETURN_IF_CUDNN_ERROR(opened->set_pooling(pooling.get(), CUDNN_POOLING_MAX,
                                            CUDNN_PROPAGATE_NAN, size, size, 0,
                                            0, stride, stride));
  return pooling;
}

absl::StatusOr<Forward> DescribeForward(const Problem& p,
                                        cudnnTensorFormat_t format,
                                        cudnnDataType_t type,
                                        cudnnMathType_t math) {
  ASSIGN_OR_RETURN(
      auto x, MakeTensor(format, type, p.batch, p.channels, p.height, p.width));
  ASSIGN_OR_RETURN(auto k, MakeFilter(format, type, p.filters, p.channels,
                                      p.kernel_size, p.kernel_size));
  ASSIGN_OR_RETURN(auto convolution, MakeConvolution(math));
  ASSIGN_OR_RETURN(auto y, MakeTensor(format, type, p.batch, p.filters,
                                      p.output_height(), p.output_width()));
  return Forward{std::move(x), std::move(k), std::move(convolution),
                 std::move(y)};
}

absl::StatusOr<int64_t> WorkspaceBytes(const Forward& forward,
                                       cudnnConvolutionFwdAlgo_t algorithm) {
  size_t bytes = 0;
  ASSIGN_OR_RETURN(const Cudnn* cudnn, OpenCudnn());
  RETURN_IF_CUDNN_ERROR(cudnn->get_workspace_size(
      cudnn->handle, forward.x.get(), forward.k.get(),
      forward.convolution.get(), forward.y.get(), algorithm, &bytes));
  return static_cast<int64_t>(bytes);
}

absl::Status RunForward(const Forward& forward,
                        cudnnConvolutionFwdAlgo_t algorithm, const void* x,
                        const void* k, void* y, const DeviceBuffer& workspace,
                        cudaStream_t stream) {
  ASSIGN_OR_RETURN(const Cudnn* cudnn, OpenCudnn());
  const float one = 1, zero = 0;
  RETURN_IF_CUDNN_ERROR(cudnn->set_stream(cudnn->handle, stream));
  RETURN_IF_CUDNN_ERROR(cudnn->convolution_forward(
      cudnn->handle, &one, forward.x.get(), x, forward.k.get(), k,
      forward.convolution.get(), algorithm, workspace.data(), workspace.bytes(),
      &zero, forward.y.get(), y));
  return absl::OkStatus();
}

const char* Name(cudnnConvolutionFwdAlgo_t algorithm) {
  switch (algorithm) {
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM:
      return "IMPLICIT_GEMM";
    case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM:
      return "IMPLICIT_PRECOMP_GEMM";
    case CUDNN_CONVOLUTION_FWD_ALGO_GEMM:
      return "GEMM";
    case CUDNN_CONVOLUTION_FWD_ALGO_DIRECT:
      return "DIRECT";
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT:
      return "FFT";
    case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING:
      return "FFT_TILING";
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD:
      return "WINOGRAD";
    case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED:
      return "WINOGRAD_NONFUSED";
    case CUDNN_CONVOLUTION_FWD_ALGO_COUNT:
      break;
  }
  return "unknown";
}

}  // namespace convlab::cuda
