// The stages of a plan on the GPU: their parameters in device memory, and how
// their work is queued. A step takes one stage or several:
//
//   - the front of the network, from bytes or floats to the first result that
//     is pooled, if one kernel does it (cuda/front.h, cuda/float_front.h);
//     otherwise enlarging alone;
//   - a convolution of few channels with its pooling, if one kernel does it:
//     cuda/convolve_pool.h and, for many images, a variant that pools faster;
//     any other by the fastest variant, which fuses what follows it where it
//     can;
//   - matrices up to the last, if they are small, the images many, and one
//     kernel does them (cuda/connected_chain.h); otherwise a matrix, and the
//     small ones that follow it.
#ifndef KERNELS_COMPILED_GPU_STAGES_H_
#define KERNELS_COMPILED_GPU_STAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/weights/weights.h"
#include "kernels/compiled/cuda/connected_chain.h"
#include "kernels/compiled/cuda/convolve_pool_plan.h"
#include "kernels/compiled/cuda/float_front.h"
#include "kernels/compiled/cuda/front_plan.h"
#include "kernels/compiled/device_network.h"
#include "kernels/compiled/plan.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/cuda/lib/device_limits.h"
#include "kernels/cuda/device.h"
#include "kernels/layers/cuda/connected_layers.h"

namespace convlab {

class GpuStages {
 public:
  // Memory for up to some number of images. Values alternate between the first
  // two buffers; the third one holds those of a convolution whose variant does
  // not pool.
  struct Memory {
    std::array<cuda::DeviceBuffer, 3> values;
    cuda::DeviceBuffer scratch;
  };
  // A convolution by the step's variant for many images, or by the one that is
  // fastest for a number of images.
  struct Chosen {
    std::unique_ptr<Convolution> convolution;
    cuda::DeviceBuffer filters;  // prepared; empty: it prepares none
    bool fused;                  // it does all of the stage
    std::string variant;
  };
  // One for each step, null where no variant convolves.
  using Convolutions = std::vector<Chosen>;

  // CheckNetwork, CheckWeights and CheckImages must accept the arguments.
  // Floats are of the network's size.
  static absl::StatusOr<std::unique_ptr<GpuStages>> Create(
      const Network& network, const Plan& plan, const NetworkWeights& weights,
      int image_size, Workers& workers, Pixels pixels = Pixels::kBytes);

  // The pieces that are under way at the same time, at most.
  static constexpr int kPieces = 4;
  // The images that are computed as one piece, at most: `most`, or fewer where
  // the current GPU's free memory is short.
  static absl::StatusOr<int64_t> PieceImages(const Network& network,
                                             int64_t most);
  // Enough images to fill the GPU, and few enough that a call with 10,000 has
  // several pieces, whose copies and kernels overlap.
  static constexpr int64_t kMostImages = 2560;
  // The images of each piece of a call with `count` images, not 0, where a
  // piece has `most` at most. All have as many, and the last one computes some
  // of those before it again: which kernels convolve depends on the number, and
  // with them an image's last bits, which may not depend on its piece.
  static int64_t EvenPiece(int64_t count, int64_t most);
  // Whether a piece's number of images makes such a difference.
  bool convolves() const;
  // Whether each logit is written once, as it stays, whatever the number of
  // images.
  bool WritesLogitsOnce() const;

  absl::StatusOr<Memory> Allocate(int64_t images) const;
  absl::StatusOr<Convolutions> MakeConvolutions(int64_t images) const;

  // The names of the kernels of the enlarging and of each stage.
  std::vector<std::string> Kernels(int64_t count,
                                   const Convolutions& convolutions) const;

  // Queues the work for images [count, image_size, image_size], bytes or floats
  // as at Create, up to the logits; both may be in pinned host memory.
  // `passed`, unless it is empty, is called after each step with the first of
  // its stages, counted from 1; 0 is enlarging.
  absl::Status Queue(
      int64_t count, const void* images, float* logits, const Memory& memory,
      const Convolutions& convolutions, Stream stream,
      const std::function<absl::Status(size_t stage)>& passed) const;

 private:
  enum class Kind {
    kFront,
    kEnlarge,
    kFloats,
    kFloatFront,
    kConvolvePool,
    kConvolve,
    kPool,
    kChain,
    kConnect
  };
  struct Front {
    cuda::FrontShape shape = {};
    cuda::DeviceBuffer filters = {};  // packed
  };
  struct Step {
    Kind kind;
    size_t first, end;  // stages
    // By warps and, where the GPU and the network are for them, by warpgroups.
    Front front = {}, warpgroup_front = {};
    int64_t pitch = 0;  // floats between two images that a matrix reads
    cuda::FloatFront float_front = {};
    cuda::ConvolvePoolShape convolve_pool = {};
    // Filters of convolve_pool or of float_front.
    cuda::DeviceBuffer packed = {};
    const Variant* pooling = nullptr;  // for many images, or null
    cuda::Chain chain = {};
    cuda::DeviceBuffer weight = {};              // filters, or a packed matrix
    cuda::DeviceBuffer bias = {};                // empty: none
    cuda::ConnectedLayers layers = {};           // behind a matrix
    std::vector<cuda::DeviceBuffer> small = {};  // parameters of these
  };

  GpuStages(const Network& network, const Plan& plan, int image_size)
      : network_(network), plan_(plan), image_size_(image_size) {}

  absl::StatusOr<Step> MakeFront(const NetworkWeights& weights);
  // Lets the images between the front and a matrix begin at whole lines.
  void AlignImages();
  // Of the first stage from floats, if one kernel does it; otherwise of none.
  absl::StatusOr<Step> MakeFloatFront(const NetworkWeights& weights) const;
  absl::StatusOr<Step> MakeConvolve(size_t stage,
                                    const NetworkWeights& weights);
  absl::StatusOr<Step> MakeChain(size_t stage, const NetworkWeights& weights,
                                 Workers& workers);
  absl::StatusOr<Step> MakeConnect(size_t stage, const NetworkWeights& weights,
                                   Workers& workers);
  absl::Status AddFollowing(const NetworkWeights& weights, Workers& workers,
                            Step& step);

  // For convolutions: they are recorded, on the device of the stages.
  Resources resources() const;

  // The numbers of the steps that so many images take, in order.
  std::vector<size_t> StepsFor(int64_t count) const;
  std::string KernelOf(size_t step, const Convolutions& convolutions) const;

  // Bytes of Memory for each image, but for the scratch memory of matrices.
  static int64_t ImageBytes(const Network& network);
  Problem ProblemOf(const Stage& stage, int64_t images) const;
  Epilogue EpilogueOf(const Step& step) const;

  absl::Status QueueFront(const Step& step, int64_t count,
                          const uint8_t* images, float* out,
                          Stream stream) const;
  absl::Status QueueConvolvePool(const Step& step, int64_t count,
                                 const float* in, float* out,
                                 Stream stream) const;
  absl::Status QueueConvolve(const Step& step, int64_t count,
                             const Chosen& chosen, const float* in, float* raw,
                             float* out, Stream stream) const;
  absl::Status QueuePool(const Step& step, int64_t count, const float* in,
                         float* out, Stream stream) const;
  absl::Status QueueConnect(const Step& step, int64_t count, const float* in,
                            float* out, const Memory& memory,
                            Stream stream) const;

  const Network network_;
  const Plan plan_;
  const int image_size_;
  int device_ = 0;  // the one that was current at Create
  cuda::DeviceLimits limits_;
  std::vector<Step> steps_;
};

}  // namespace convlab

#endif  // KERNELS_COMPILED_GPU_STAGES_H_
