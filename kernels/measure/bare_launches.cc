#include "kernels/measure/bare_launches.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/graph.h"

namespace convlab::cuda {
namespace {

// The driver's function tells which kernel a node is, the runtime's does not.
// The driver is opened when a program runs.
using AskKernel = CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*);
absl::StatusOr<AskKernel> FindAskKernel() {
  constexpr char kName[] = "cuGraphKernelNodeGetParams";
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
  constexpr unsigned kVersion = 12000;
  RETURN_IF_ERROR(
      CudaStatus(cudaGetDriverEntryPointByVersion(kName, &function, kVersion,
                                                  cudaEnableDefault, &result),
                 "cudaGetDriverEntryPointByVersion"));
#else
  RETURN_IF_ERROR(CudaStatus(
      cudaGetDriverEntryPoint(kName, &function, cudaEnableDefault, &result),
      "cudaGetDriverEntryPoint"));
#endif
  if (result != cudaDriverEntryPointSuccess) {
    return absl::UnavailableError(absl::StrCat("the driver has no ", kName));
  }
  return reinterpret_cast<AskKernel>(function);
}

}  // namespace

struct BareLaunches::Kernels {
  RecordedGraph graph;  // owns the arguments
  std::vector<CUDA_KERNEL_NODE_PARAMS> launches;
};

absl::StatusOr<BareLaunches> BareLaunches::Of(
    const DeviceStream& stream, const std::function<absl::Status()>& queue) {
  auto kernels = std::make_shared<Kernels>();
  ASSIGN_OR_RETURN(kernels->graph, RecordGraph(stream, queue));
  size_t count = 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaGraphGetNodes(kernels->graph.get(), nullptr, &count),
                 "cudaGraphGetNodes"));
  std::vector<cudaGraphNode_t> nodes(count);
  RETURN_IF_ERROR(
      CudaStatus(cudaGraphGetNodes(kernels->graph.get(), nodes.data(), &count),
                 "cudaGraphGetNodes"));
  AskKernel ask = nullptr;
  if (count > 0) {
    ASSIGN_OR_RETURN(ask, FindAskKernel());
  }
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    RETURN_IF_ERROR(
        CudaStatus(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType"));
    if (type != cudaGraphNodeTypeKernel) {
      return absl::UnimplementedError(absl::StrCat("recorded a node of type ",
                                                   static_cast<int>(type),
                                                   ", expected kernels"));
    }
    CUDA_KERNEL_NODE_PARAMS parameters = {};
    if (const CUresult error = ask(node, &parameters); error != CUDA_SUCCESS) {
      return absl::InternalError(absl::StrCat(
          "cuGraphKernelNodeGetParams: error ", static_cast<int>(error)));
    }
    if (parameters.kern == nullptr || parameters.kernelParams == nullptr) {
      return absl::UnimplementedError(
          "the driver does not tell which kernel was recorded");
    }
    kernels->launches.push_back(parameters);
  }
  return BareLaunches(std::move(kernels));
}

int BareLaunches::count() const {
  return static_cast<int>(kernels_->launches.size());
}

absl::Status BareLaunches::Start(bool overlapping) const {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  for (const CUDA_KERNEL_NODE_PARAMS& kernel : kernels_->launches) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ);
    config.blockDim =
        dim3(kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ);
    config.dynamicSmemBytes = kernel.sharedMemBytes;
    config.attrs = &attribute;
    config.numAttrs = overlapping ? 1 : 0;
    RETURN_IF_ERROR(CudaStatus(
        cudaLaunchKernelExC(&config, kernel.kern, kernel.kernelParams),
        "cudaLaunchKernelExC"));
  }
  return absl::OkStatus();
}

}  // namespace convlab::cuda
