#include "kernels/baseline/convolution.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "kernels/baseline/cudnn_library.h"
#include "kernels/cuda/device.h"

namespace convlab {
namespace {

using cuda::DeviceBuffer;
using cuda::Forward;

// Images per call: enough to fill the GPU, but few enough for the faster
// algorithms, whose workspace grows with the batch (FFT_TILING needs 0.3 MB per
// image of fa18's second layer).
constexpr int64_t kPieceImages = 1024;
constexpr int64_t kWorkspaceLimit = int64_t{512} << 20;

absl::StatusOr<Forward> Describe(const Problem& problem) {
  return cuda::DescribeForward(problem, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                               CUDNN_FMA_MATH);
}

Problem WithBatch(Problem problem, int64_t batch) {
  problem.batch = batch;
  return problem;
}

// Returns the algorithms that support `problem`, fastest first.
absl::StatusOr<std::vector<cudnnConvolutionFwdAlgo_t>> Search(
    const cuda::Cudnn& cudnn, const Problem& problem) {
  ASSIGN_OR_RETURN(const Forward forward, Describe(problem));
  DeviceBuffer buffers[4];
  const int64_t bytes[] = {4 * problem.input_elements(),
                           4 * problem.kernel_elements(),
                           4 * problem.output_elements(), kWorkspaceLimit};
  for (int i = 0; i < 4; ++i) {
    ASSIGN_OR_RETURN(buffers[i], DeviceBuffer::Allocate(bytes[i]));
  }
  cudnnConvolutionFwdAlgoPerf_t found[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
  int count = 0;
  RETURN_IF_CUDNN_ERROR(cudnn.find_algorithm(
      cudnn.handle, forward.x.get(), buffers[0].data(), forward.k.get(),
      buffers[1].data(), forward.convolution.get(), forward.y.get(),
      buffers[2].data(), CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &count, found,
      buffers[3].data(), buffers[3].bytes()));
  std::vector<cudnnConvolutionFwdAlgo_t> algorithms;
  for (int i = 0; i < count; ++i) {
    if (found[i].status == CUDNN_STATUS_SUCCESS &&
        found[i].mathType == CUDNN_FMA_MATH) {
      algorithms.push_back(found[i].algo);
    }
  }
  return algorithms;
}

class CudnnConvolution : public Convolution {
 public:
  static absl::StatusOr<std::unique_ptr<Convolution>> Create(
      const Problem& problem, const Epilogue&, const Resources& resources) {
    const cuda::CurrentDevice current(resources.device);
    RETURN_IF_ERROR(current.status());
    ASSIGN_OR_RETURN(const cuda::Cudnn* cudnn, cuda::OpenCudnn());
    // In addition, cuDNN counts elements in 32 bits.
    const int64_t image =
        std::max(problem.input_elements(), problem.output_elements()) /
        problem.batch;
    const int64_t piece =
        std::clamp<int64_t>(std::numeric_limits<int>::max() / image, 1,
                            std::min(problem.batch, kPieceImages));
    ASSIGN_OR_RETURN(Forward whole, Describe(WithBatch(problem, piece)));
    const int64_t left = std::max<int64_t>(problem.batch % piece, 1);
    ASSIGN_OR_RETURN(Forward rest, Describe(WithBatch(problem, left)));
    auto convolution = std::unique_ptr<CudnnConvolution>(new CudnnConvolution(
        problem, resources.device, piece, std::move(whole), std::move(rest)));
    ASSIGN_OR_RETURN(const auto algorithms,
                     Search(*cudnn, WithBatch(problem, piece)));
    RETURN_IF_ERROR(convolution->Choose(algorithms));
    return convolution;
  }

  absl::Status Run(const float* x, const float* k, float* y,
                   Stream stream) override {
    const cuda::CurrentDevice current(device_);
    RETURN_IF_ERROR(current.status());
    const int64_t x_image = problem_.input_elements() / problem_.batch;
    const int64_t y_image = problem_.output_elements() / problem_.batch;
    for (int64_t b = 0; b < problem_.batch; b += piece_) {
      const bool whole = problem_.batch - b >= piece_;
      RETURN_IF_ERROR(cuda::RunForward(whole ? whole_ : rest_, algorithm_,
                                       x + b * x_image, k, y + b * y_image,
                                       workspace_, stream));
    }
    return absl::OkStatus();
  }

 private:
  CudnnConvolution(const Problem& problem, int device, int64_t piece,
                   Forward whole, Forward rest)
      : problem_(problem),
        device_(device),
        piece_(piece),
        whole_(std::move(whole)),
        rest_(std::move(rest)) {}

  // Takes the fastest algorithm that supports the last piece too.
  absl::Status Choose(
      const std::vector<cudnnConvolutionFwdAlgo_t>& algorithms) {
    for (const cudnnConvolutionFwdAlgo_t algorithm : algorithms) {
      const auto whole = cuda::WorkspaceBytes(whole_, algorithm);
      const auto rest = cuda::WorkspaceBytes(rest_, algorithm);
      if (!whole.ok() || !rest.ok()) continue;
      algorithm_ = algorithm;
      ASSIGN_OR_RETURN(workspace_,
                       DeviceBuffer::Allocate(std::max(*whole, *rest)));
      return absl::OkStatus();
    }
    return absl::UnimplementedError(absl::StrCat(
        "cuDNN has no algorithm for ", ToString(problem_),
        " with a workspace of at most ", kWorkspaceLimit >> 20, " MiB"));
  }

  const Problem problem_;
  const int device_;
  const int64_t piece_;  // images per call
  const Forward whole_;  // of a piece
  const Forward rest_;   // of the remainder after the last whole piece
  cudnnConvolutionFwdAlgo_t algorithm_ =
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  DeviceBuffer workspace_;
};

}  // namespace

const Variant kCudnnVariant = {
    "cudnn",
    Backend::kCuda,
    // Its search may take a transform.
    AccuracyClass::kFp32Normwise,
    Track::kProduction,
    "NVIDIA's cuDNN, with the fastest algorithm of its own search, in NCHW and "
    "float32 without TF32.",
    "The library that frameworks call, and the peer that other kernels are "
    "compared with.",
    SupportsAll,
    CudnnConvolution::Create,
};

}  // namespace convlab
