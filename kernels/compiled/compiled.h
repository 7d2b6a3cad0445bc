// A network that is compiled as a whole: from bytes to logits in the stages of
// its plan, without an op time for any layer. It gives the labels of
// RunInference (kernels/inference), which runs layer by layer, unless the two
// largest logits are closer than float32 can tell.
//
//   ASSIGN_OR_RETURN(auto compiled,
//                    CompileForCpu(network, weights, /*image_size=*/28,
//                                  workers));
//   RETURN_IF_ERROR(compiled->Run(images, count, logits));
#ifndef KERNELS_COMPILED_COMPILED_H_
#define KERNELS_COMPILED_COMPILED_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/weights/weights.h"
#include "kernels/compiled/plan.h"

namespace convlab {

class CompiledNetwork {
 public:
  virtual ~CompiledNetwork() = default;

  // Computes the logits [count, classes] of `count` images, each of image_size
  // x image_size bytes. Any count will do, and each call may have another. The
  // same images give the same bits each time. On the CPU an image's logits do
  // not depend on the others; on the GPU they do by rounding, since each number
  // of images has the kernels that are fastest for it. One thread at a time may
  // call.
  virtual absl::Status Run(const uint8_t* images, int64_t count,
                           float* logits) = 0;

  virtual const Plan& plan() const = 0;

  // Where the time of all calls so far went, in nanoseconds of wall clock: the
  // enlarging of the images, then each stage of the plan. On the GPU it is the
  // time of StageImages() once more, stage by stage, since a call's stages run
  // as one, scaled to all; what a kernel does of several stages counts for the
  // first of them.
  virtual std::vector<int64_t> StageNs() const = 0;

  // How many images StageNs takes the time of, on the GPU: those of a piece of
  // the size in which most images came. 0 on the CPU, whose times are of all.
  virtual int64_t StageImages() const { return 0; }

  // What ran the stages of such a piece, in the same order: the names of
  // kernels, one for all stages that it does. Empty on the CPU.
  virtual std::vector<std::string> StageKernels() const { return {}; }
};

// Compiles the network for the CPU. `workers` must outlive the result; network
// and weights need not. InvalidArgument if the network, its weights or the size
// of the images are refused (CheckNetwork, CheckWeights, CheckImages).
absl::StatusOr<std::unique_ptr<CompiledNetwork>> CompileForCpu(
    const Network& network, const NetworkWeights& weights, int image_size,
    Workers& workers);

// The same on the current GPU. `workers` fold the layers and copy the images.
// Unavailable if there is no GPU that can be used, ResourceExhausted if its
// memory is too small.
absl::StatusOr<std::unique_ptr<CompiledNetwork>> CompileForGpu(
    const Network& network, const NetworkWeights& weights, int image_size,
    Workers& workers);

// The most images that a network which is compiled now would compute at once on
// the current GPU: fewer where its free memory is short. A larger call is cut
// into parts of no more, so that the last bits of its logits depend on it.
// Errors are those of CompileForGpu.
absl::StatusOr<int64_t> GpuPieceImages(const Network& network);

// CompileForGpu with such a number of another time or GPU, for the same bits.
absl::StatusOr<std::unique_ptr<CompiledNetwork>> CompileForGpuInPieces(
    const Network& network, const NetworkWeights& weights, int image_size,
    int64_t piece_images, Workers& workers);

// An answer by one image's logits.
struct Answer {
  int label;   // the class with the largest logit, the first of several
  int second;  // the class with the largest of the others; 0 if it is the only
  // The distance of the two logits; infinite if there is only one class.
  float margin;
  // Whether rounding may decide between the two: the distance is at most 2^-17
  // of the larger logit's magnitude. That is 64 times float32's unit in the
  // last place there, and several times the difference that orders of addition
  // make in the logits of the trained networks (tools/training/README.md).
  bool close;
};

Answer AnswerOf(const float* logits, int classes);

}  // namespace convlab

#endif  // KERNELS_COMPILED_COMPILED_H_
