// A network prepared on a machine: it owns the memory and the convolutions and
// runs the layers one by one.
#ifndef KERNELS_INFERENCE_PIPELINE_H_
#define KERNELS_INFERENCE_PIPELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/network/network.h"
#include "common/weights/weights.h"
#include "kernels/convolution/convolution.h"
#include "kernels/inference/machine.h"
#include "kernels/inference/steps.h"

namespace convlab {

// One for each of the network's layers. `weights` must outlive the result, and
// CheckWeights must accept them.
absl::StatusOr<std::vector<PlacedLayer>> PlaceWeights(
    const Network& network, const NetworkWeights& weights, Machine& machine);

// Activations alternate between two buffers: a step reads one and writes the
// other, or changes its input in place, and the images come into the first.
// Returns the floats of one image that each must hold.
std::array<int64_t, 2> BufferFloats(const Network& network,
                                    const std::vector<Step>& steps);

// The layers before the first fully connected one process a slice of images in
// pieces, the others as a whole. The arguments of Create must outlive the
// pipeline.
class Pipeline {
 public:
  // Creates a pipeline for slices of up to `slice` images in pieces of `piece`.
  // `convolver`, unless it is null, computes the convolutions.
  // ResourceExhausted if the machine has too little memory.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Create(
      const Network& network, const std::vector<PlacedLayer>& weights,
      const std::vector<Step>& steps, Machine& machine, int64_t slice,
      int64_t piece, Convolver* convolver = nullptr);

  // Creates the convolutions, one variant for each, for slices of `batch`
  // images. Must be called before the first Run on that many.
  absl::Status Prepare(int64_t batch,
                       const std::vector<const Variant*>& variants,
                       const Resources& resources);

  // Classifies `batch` images of `size` x `size` bytes, and writes their logits
  // to `logits`, which is in host memory, unless it is null. Adds each
  // convolution's times to `times`, which has an element for each layer.
  absl::Status Run(const uint8_t* images, int size, int64_t batch,
                   uint8_t* labels, float* logits, std::vector<OpTime>& times);

 private:
  // The convolutions for pieces of `batch` images, by layer; null elsewhere.
  struct Convolutions {
    int64_t batch;
    std::vector<std::unique_ptr<Convolution>> layers;
  };
  // The tensor after the steps so far. `buffer` is the buffer that holds it,
  // or that would if it were not in features_.
  struct Reached {
    float* values;
    int buffer;
  };

  Pipeline(const Network& network, const std::vector<PlacedLayer>& weights,
           const std::vector<Step>& steps, Machine& machine, int64_t piece,
           Convolver* convolver);

  absl::Status PreparePiece(int64_t batch,
                            const std::vector<const Variant*>& variants,
                            const Resources& resources);
  std::vector<Convolutions>::const_iterator Find(int64_t batch) const;

  // The features of a piece of `batch` images that begins at image `first` of
  // its slice.
  absl::StatusOr<Reached> Extract(const uint8_t* images, int size,
                                  int64_t batch, int64_t first,
                                  std::vector<OpTime>& times);
  // Runs a step on the `batch` images at `reached` and moves `reached` to its
  // output: `out`, or the next buffer if that is null, or the same place.
  absl::Status RunStep(const Step& step, int64_t batch, float* out,
                       Reached& reached, std::vector<OpTime>& times);
  // Computes convolution layer `i` by its variant or by the convolver.
  absl::Status Convolve(size_t i, int64_t batch, const float* x, float* y,
                        OpTime& time);
  // Activation, if the step has one, and pooling.
  absl::Status Pool(const Step& step, int64_t batch, float* in, float* out);
  // The scratch memory of the fully connected layers is the rest of their
  // outputs' buffer.
  absl::Status Connect(size_t i, int64_t batch, const float* in, int buffer);

  const Network& network_;
  const std::vector<PlacedLayer>& weights_;
  const std::vector<Step>& steps_;
  Machine& machine_;
  Convolver* const convolver_;  // may be null
  const int64_t piece_;         // images
  const std::vector<TensorShape> shapes_;
  const size_t feature_layers_;
  size_t feature_steps_ = 0;  // that compute these
  std::array<int64_t, 2> floats_ = {};
  std::array<std::shared_ptr<float>, 2> buffers_;
  // The inputs of the fully connected layers, for a slice that is computed in
  // pieces.
  std::shared_ptr<float> features_;
  // The number of steps that compute features_; later steps before the first
  // fully connected layer work in place.
  size_t steps_before_features_ = 0;
  std::vector<Convolutions> convolutions_;
};

}  // namespace convlab

#endif  // KERNELS_INFERENCE_PIPELINE_H_
