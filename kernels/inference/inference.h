// Runs a network over a data set with chosen convolutions, and measures them.
// All layers run where the convolutions do, on the CPU or on the GPU.
#ifndef KERNELS_INFERENCE_INFERENCE_H_
#define KERNELS_INFERENCE_INFERENCE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/idx.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/weights/weights.h"
#include "kernels/convolution/convolution.h"
#include "kernels/measure/op_time.h"

namespace convlab {

// Computes the convolutions of a network in place of variants.
class Convolver {
 public:
  virtual ~Convolver() = default;

  // Computes y of convolution `index` of the network, counted from 0, and adds
  // its times to `time`. The tensors are in the memory of the backend; x and y
  // hold problem.batch images.
  virtual absl::Status Convolve(size_t index, const Problem& problem,
                                const float* x, const float* k, float* y,
                                OpTime& time) = 0;
};

struct InferenceOptions {
  // The backend of all layers.
  Backend backend = Backend::kCpu;
  // One variant per convolution of the network, all of that backend.
  std::vector<const Variant*> variants;
  // Not null: computes the convolutions, and `variants` is empty.
  Convolver* convolver = nullptr;
  // On the GPU: runs the other layers with cuDNN and cuBLAS, the baseline,
  // instead of our own kernels.
  bool library_layers = false;
  // Lets a convolution compute the bias, the activation and the pooling that
  // follow it, where its variant fuses them. Its op time and kernel time then
  // include them.
  bool fuse = false;
  // Whether the result has the logits.
  bool logits = false;
  // Number of runs of the whole network; each gives one sample per convolution.
  int repeat = 1;
  // Memory for the activations that are alive at one time. The batch is cut
  // into slices that fit (of at least one image), so that memory does not grow
  // with it. On the GPU; 0: all free memory except a reserve.
  int64_t device_memory_bytes = 0;
  // The same on the CPU, for each of up to 16 threads and the inputs of the
  // first fully connected layer: with larger slices it reads its weights less
  // often.
  int64_t activation_bytes = int64_t{16} << 20;
  // The same for the layers before it, which process a slice in pieces (of at
  // least one image) that stay in the caches from one layer to the next.
  int64_t cached_bytes = int64_t{4} << 20;
  // Called from time to time with the completed share of the work, 0 to 1.
  std::function<void(double)> progress;
};

struct InferenceResult {
  // The class found for each image, by repetition.
  std::vector<std::vector<uint8_t>> labels;
  std::vector<float> logits;  // [image][class], if asked for
  // What each convolution fused, as ToString(Epilogue) says it; empty where it
  // fused nothing.
  std::vector<std::string> fused;
  // Op time of each convolution in each repetition, [convolution][repetition]:
  // host clock around Run, on the GPU with the device synchronized before and
  // after, summed over the slices.
  std::vector<std::vector<int64_t>> op_time_ns;
  // Kernel time likewise: device events around Run. On the CPU no repetitions.
  std::vector<std::vector<int64_t>> kernel_time_ns;
  // The threads of the CPU that shared each convolution's work; 0 where that is
  // not known, of a convolver and on the GPU.
  std::vector<int> threads;
  // The time before the first repetition: placing weights, allocating memory,
  // creating convolutions.
  int64_t prepare_ns = 0;
  // All layers, enlarging the images included, one per repetition.
  std::vector<int64_t> inference_ns;
  int64_t slice = 0;  // images per slice
  // Device memory that weights, activations and the convolutions' workspaces
  // took; 0 on the CPU.
  int64_t device_memory_peak_bytes = 0;
  std::string note;  // tells the user that the GPU's memory was short; or empty
};

// Convolution `index` of the network, counted from 0, on `batch` images.
Problem ConvolutionProblem(const Network& network, size_t index, int64_t batch);

// InvalidArgument unless the network takes grey images and these are 28x28 or
// already of its size.
absl::Status CheckImages(const Network& network, const ImageSet& images);

// Classifies the first `size` images. InvalidArgument if the network, its
// weights or the images are refused (CheckNetwork, CheckWeights, CheckImages),
// or unless the variants are one for each convolution, of the backend, and
// support it; Unavailable if the backend is the GPU and there is none;
// ResourceExhausted if its memory is too small for one image.
absl::StatusOr<InferenceResult> RunInference(const Network& network,
                                             const NetworkWeights& weights,
                                             const ImageSet& images,
                                             int64_t size,
                                             const InferenceOptions& options,
                                             Workers& workers);

}  // namespace convlab

#endif  // KERNELS_INFERENCE_INFERENCE_H_
