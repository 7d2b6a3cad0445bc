// A plan in device memory, and the recording of a call. Pieces take turns in
// two streams, so that one piece's kernels fill what another's leave idle: the
// front of a network waits for instructions, its matrix for memory, and each
// has a last round of blocks that does not fill the GPU.
#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "common/status/status.h"
#include "kernels/compiled/device_network.h"
#include "kernels/compiled/gpu_stages.h"
#include "kernels/compiled/plan.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/graph.h"
#include "kernels/cuda/side_stream.h"
#include "kernels/inference/inference.h"
#include "kernels/layers/cuda/layers.h"

namespace convlab {
namespace {

class GpuDeviceNetwork : public DeviceNetwork {
 public:
  GpuDeviceNetwork(std::unique_ptr<GpuStages> stages,
                   std::array<GpuStages::Memory, 2> memory,
                   cuda::SideStream side, int64_t piece, int64_t image_bytes,
                   int classes)
      : stages_(std::move(stages)),
        memory_(std::move(memory)),
        side_(std::move(side)),
        piece_(piece),
        image_bytes_(image_bytes),
        classes_(classes) {}

  absl::Status Prepare(int64_t count) override {
    if (count == 0) return absl::OkStatus();
    const int64_t part = GpuStages::EvenPiece(count, piece_);
    std::vector<GpuStages::Convolutions>& prepared = prepared_[part];
    const size_t streams = count > part ? 2 : 1;
    while (prepared.size() < streams) {
      ASSIGN_OR_RETURN(auto convolutions, stages_->MakeConvolutions(part));
      prepared.push_back(std::move(convolutions));
    }
    return absl::OkStatus();
  }

  absl::Status Queue(const void* images, int64_t count, float* logits,
                     uint8_t* labels, Stream stream) override {
    if (count == 0) return absl::OkStatus();
    RETURN_IF_ERROR(Prepare(count));
    const auto* const bytes = static_cast<const uint8_t*>(images);
    const int64_t part = GpuStages::EvenPiece(count, piece_);
    const bool branches = count > part;
    const std::vector<GpuStages::Convolutions>& prepared = prepared_.at(part);
    // A convolution is of as many images as it was prepared for.
    const bool whole_pieces =
        std::any_of(prepared[0].begin(), prepared[0].end(),
                    [](const GpuStages::Chosen& chosen) {
                      return chosen.convolution != nullptr;
                    });
    if (branches) RETURN_IF_ERROR(side_.Fork(stream));
    bool side = false;
    for (int64_t next = 0; next < count; next += part) {
      int64_t first = next, images_now = std::min(part, count - next);
      // A piece that computes some of the images before it is in their piece's
      // stream: two may not write the same logits at the same time.
      if (images_now < part && whole_pieces) {
        first = count - part;
        images_now = part;
      } else if (next > 0) {
        side = !side;
      }
      const Stream own = side ? side_.get() : stream;
      float* const answers = logits + first * classes_;
      RETURN_IF_ERROR(stages_->Queue(images_now, bytes + first * image_bytes_,
                                     answers, memory_[side], prepared[side],
                                     own, {}));
      if (labels == nullptr) continue;
      RETURN_IF_ERROR(
          cuda::Label(images_now, classes_, answers, labels + first, own));
    }
    return branches ? side_.Join(stream) : absl::OkStatus();
  }

 private:
  const std::unique_ptr<GpuStages> stages_;
  const std::array<GpuStages::Memory, 2> memory_;
  const cuda::SideStream side_;
  const int64_t piece_;
  const int64_t image_bytes_;
  const int classes_;
  // By images. Each stream has its own, whose workspace no other one's pieces
  // write at the same time.
  std::map<int64_t, std::vector<GpuStages::Convolutions>> prepared_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceNetwork>> CompileForDevice(
    const Network& network, const NetworkWeights& weights, int image_size,
    Pixels pixels, Workers& workers) {
  RETURN_IF_ERROR(CheckNetwork(network));
  RETURN_IF_ERROR(CheckWeights(network, weights));
  const bool floats = pixels == Pixels::kFloats;
  const int size = floats ? network.image_size : image_size;
  RETURN_IF_ERROR(CheckImages(network, {1, size, size, {}}));
  RETURN_IF_ERROR(cuda::FindDevice().status());
  ASSIGN_OR_RETURN(auto stages,
                   GpuStages::Create(network, MakePlan(network), weights, size,
                                     workers, pixels));
  // Two pieces for 10,000 images: there are no copies that they would overlap
  // with. Not where convolutions are chosen for their number of images: so the
  // last bits are those of CompiledNetwork, which takes bytes alone.
  constexpr int64_t kMostDeviceImages = 5000;
  const bool as_compiled = stages->convolves() && !floats;
  ASSIGN_OR_RETURN(
      const int64_t piece,
      GpuStages::PieceImages(
          network, as_compiled ? GpuStages::kMostImages : kMostDeviceImages));
  std::array<GpuStages::Memory, 2> memory;
  for (GpuStages::Memory& one : memory) {
    ASSIGN_OR_RETURN(one, stages->Allocate(piece));
  }
  ASSIGN_OR_RETURN(cuda::SideStream side, cuda::SideStream::Create());
  const int64_t pixel_bytes = floats ? sizeof(float) : 1;
  return std::make_unique<GpuDeviceNetwork>(
      std::move(stages), std::move(memory), std::move(side), piece,
      pixel_bytes * size * size * network.image_channels, network.Classes());
}

absl::StatusOr<std::function<absl::Status(Stream)>> Record(
    DeviceNetwork& network, const DeviceCall& call) {
  ASSIGN_OR_RETURN(const auto stream, cuda::DeviceStream::Create());
  const auto queue = [&]() -> absl::Status {
    if (call.host_images != nullptr) {
      RETURN_IF_ERROR(cuda::QueueCopy(call.images, call.host_images,
                                      call.host_bytes, stream.get()));
    }
    RETURN_IF_ERROR(network.Queue(call.images, call.count, call.logits,
                                  call.labels, stream.get()));
    if (call.host_labels == nullptr) return absl::OkStatus();
    return cuda::QueueCopy(call.host_labels, call.labels, call.count,
                           stream.get());
  };
  // The first time kernels are loaded, which a recording does not do.
  RETURN_IF_ERROR(network.Prepare(call.count));
  RETURN_IF_ERROR(queue());
  RETURN_IF_ERROR(stream.Synchronize());
  ASSIGN_OR_RETURN(cuda::Graph graph, cuda::Graph::Record(stream, queue));
  const auto shared = std::make_shared<const cuda::Graph>(std::move(graph));
  return [shared](Stream to) { return shared->Launch(to); };
}

}  // namespace convlab
