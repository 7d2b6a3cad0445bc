// The GPU's way through a plan. Images come and logits go through pinned
// memory, piece by piece; images that are in such memory go from where they
// are. Of a call that is one piece the work is started first, and waits for the
// images (gpu_upload.h). Several slots take turns, so that the host copies
// ahead, and one piece's copies and kernels run beside another's. A piece's
// work is recorded once for each number of images, and then started as a whole.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "common/status/status.h"
#include "kernels/compiled/compiled.h"
#include "kernels/compiled/gpu_stages.h"
#include "kernels/compiled/gpu_upload.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/graph.h"
#include "kernels/inference/inference.h"

namespace convlab {
namespace {

// So few images are read from pinned memory where they are, and their logits
// written there: a copy would take longer to start.
constexpr int64_t kFewImages = 256;
// The GPU waits for the copies of the first piece: it may have only one in so
// many of a piece's images.
constexpr int64_t kFirstShare = 4;
// The numbers of images for which a slot keeps what it prepared.
constexpr size_t kMostPrepared = 16;

constexpr int64_t kFloat = sizeof(float);

// So few images are done when the host sees their logits, a microsecond before
// the driver tells it. Of more it learns sooner from the driver: an H200 gained
// with 1 to 32 images, and lost with 64 and 100.
constexpr int64_t kSeenImages = 16;
// Stands in the place of these logits until kernels write them. No arithmetic
// gives these bits: a GPU's NaN is 0x7fffffff.
constexpr uint32_t kNotThere = 0xffffdead;
// Looks at the logits between two questions whether the stream has ended.
constexpr int kLooks = 2000;

// Where the GPU gave up images so many times in a row, starting its work waits
// for the work's end, as under a profiler. Images are copied first from then
// on.
constexpr int kMostMisses = 2;

// Where a piece's images are when its work starts: in the slot's pinned memory,
// on their way there, or on the device.
enum Source { kPinned, kArriving, kOnDevice, kSources };

// What is ready for a number of images.
struct Prepared {
  GpuStages::Convolutions convolutions;
  std::array<bool, kSources> ran = {};
  std::array<std::optional<cuda::Graph>, kSources> graphs;
};

// Memory and a stream for one piece.
struct Slot {
  explicit Slot(cuda::DeviceStream own) : stream(std::move(own)) {}

  cuda::DeviceStream stream;
  GpuStages::Memory memory;
  cuda::DeviceBuffer device_images, device_logits;
  cuda::PinnedBuffer images, logits;
  OverlappedUpload upload;
  std::map<int64_t, Prepared> prepared;
  int64_t running = 0;      // images of the piece that was started
  Source source = kPinned;  // its images'
  float* out = nullptr;     // where its logits go
};

class GpuCompiled : public CompiledNetwork {
 public:
  GpuCompiled(Plan plan, std::unique_ptr<GpuStages> stages, int64_t image_bytes,
              int classes, int64_t piece, Workers& workers)
      : plan_(std::move(plan)),
        stages_(std::move(stages)),
        image_bytes_(image_bytes),
        classes_(classes),
        piece_(piece),
        writes_logits_once_(stages_->WritesLogitsOnce()),
        workers_(workers) {}

  // Slots but the first are made when a call has so many pieces.
  absl::Status MakeSlot() {
    ASSIGN_OR_RETURN(auto stream, cuda::DeviceStream::Create());
    auto slot = std::make_unique<Slot>(std::move(stream));
    ASSIGN_OR_RETURN(slot->memory, stages_->Allocate(piece_));
    const int64_t in = piece_ * image_bytes_, out = piece_ * classes_ * kFloat;
    ASSIGN_OR_RETURN(slot->device_images, cuda::DeviceBuffer::Allocate(in));
    ASSIGN_OR_RETURN(slot->device_logits, cuda::DeviceBuffer::Allocate(out));
    ASSIGN_OR_RETURN(slot->images, cuda::PinnedBuffer::Allocate(in));
    ASSIGN_OR_RETURN(slot->logits, cuda::PinnedBuffer::Allocate(out));
    ASSIGN_OR_RETURN(slot->upload, OverlappedUpload::Allocate());
    slots_.push_back(std::move(slot));
    return absl::OkStatus();
  }

  absl::Status Run(const uint8_t* images, int64_t count,
                   float* logits) override {
    // If the call fails or throws, nothing may go on writing.
    absl::Cleanup stop([this] {
      for (const auto& slot : slots_) {
        slot->stream.Synchronize().IgnoreError();
        slot->running = 0;
      }
    });
    absl::Status status = RunPieces(images, count, logits);
    if (status.ok()) std::move(stop).Cancel();
    return status;
  }

  const Plan& plan() const override { return plan_; }

  std::vector<std::string> StageKernels() const override {
    const int64_t count = StageImages();
    if (count == 0) return {};
    const absl::StatusOr<Prepared*> prepared = Find(SlotOf(count), count);
    if (!prepared.ok()) return {};
    return stages_->Kernels(count, (*prepared)->convolutions);
  }

  int64_t StageImages() const override {
    int64_t most = 0, images = 0;
    for (const auto& [count, all] : images_of_) {
      if (all > images) most = count, images = all;
    }
    return most;
  }

  std::vector<int64_t> StageNs() const override {
    std::vector<int64_t> ns(plan_.stages.size() + 1, 0);
    const int64_t count = StageImages();
    if (count == 0) return ns;
    // Zeros tell that the GPU could not be asked.
    const absl::StatusOr<std::vector<int64_t>> timed = TimeStages(count);
    if (!timed.ok()) return ns;
    for (size_t i = 0; i < ns.size(); ++i) {
      ns[i] = static_cast<int64_t>(static_cast<double>((*timed)[i]) / count *
                                   all_images_);
    }
    return ns;
  }

 private:
  absl::Status RunPieces(const uint8_t* images, int64_t count, float* logits) {
    // To ask takes a microsecond, which is much for a few images.
    in_place_ =
        count > kFewImages && cuda::IsPinned(images, count * image_bytes_);
    size_t turn = 0;
    int64_t next = 0;
    // Of many pieces one more goes first, with few images.
    if (count > 2 * piece_ && !stages_->convolves()) {
      next = std::max<int64_t>(1, piece_ / kFirstShare);
      RETURN_IF_ERROR(RunPiece(turn++, images, next, /*alone=*/false, logits));
    }
    const int64_t part =
        count == 0 ? 1 : GpuStages::EvenPiece(count - next, piece_);
    for (; next < count; next += part) {
      const int64_t first = std::min(next, count - part);
      RETURN_IF_ERROR(RunPiece(turn++, images + first * image_bytes_, part,
                               /*alone=*/count <= piece_,
                               logits + first * classes_));
    }
    // In the order of pieces, so that logits are copied while the last compute.
    for (size_t i = 0; i < slots_.size(); ++i) {
      RETURN_IF_ERROR(Collect(*slots_[(turn + i) % slots_.size()]));
    }
    all_images_ += count;
    return absl::OkStatus();
  }

  // Starts the piece of this number in the call, as soon as its slot is free.
  // One that is `alone` may wait on the GPU for its images: no other piece of
  // this network needs the multiprocessors meanwhile.
  absl::Status RunPiece(size_t piece, const uint8_t* images, int64_t count,
                        bool alone, float* logits) {
    const size_t turn = piece % GpuStages::kPieces;
    if (turn == slots_.size()) RETURN_IF_ERROR(MakeSlot());
    Slot& slot = *slots_[turn];
    RETURN_IF_ERROR(Collect(slot));
    const int64_t bytes = count * image_bytes_;
    auto* const pinned = static_cast<uint8_t*>(slot.images.data());
    Source source = kPinned;
    if (in_place_ && count > kFewImages) {
      source = kOnDevice;
      RETURN_IF_ERROR(cuda::QueueCopy(slot.device_images.data(), images, bytes,
                                      slot.stream.get()));
    } else if (alone && count > kFewImages && OverlappedUpload::Takes(bytes)) {
      source = kArriving;
    }
    ASSIGN_OR_RETURN(Prepared* const prepared, Find(slot, count));
    // To queue and to record takes longer than the GPU waits.
    const bool starts_first = source == kArriving &&
                              prepared->graphs[source].has_value() &&
                              misses_ < kMostMisses;
    if (starts_first) {
      slot.upload.Expect(bytes);
    } else if (source == kArriving) {
      slot.upload.Copy(images, bytes, pinned, workers_);
    } else if (source == kPinned) {
      CopyForGpu(images, bytes, pinned, workers_);
    }
    if (SeesLogits(count)) {
      std::fill_n(static_cast<uint32_t*>(slot.logits.data()), count * classes_,
                  kNotThere);
    }
    slot.out = logits;
    slot.running = count;
    slot.source = source;
    const absl::Status started = Start(slot, *prepared);
    if (starts_first) slot.upload.Copy(images, bytes, pinned, workers_);
    RETURN_IF_ERROR(started);
    images_of_[count] += count;
    return absl::OkStatus();
  }

  // Whether the host sees by the slot's logits that a piece is done.
  bool SeesLogits(int64_t count) const {
    return count <= kSeenImages && writes_logits_once_;
  }

  // Waits for the slot's piece, if it has one, and hands out its logits.
  absl::Status Collect(Slot& slot) {
    if (slot.running == 0) return absl::OkStatus();
    RETURN_IF_ERROR(SeesLogits(slot.running)
                        ? WaitForLogits(slot, slot.running * classes_)
                        : slot.stream.Synchronize());
    const bool missed = slot.source == kArriving && slot.upload.TakeMissed();
    if (!missed && misses_ < kMostMisses) misses_ = 0;
    if (missed) {
      ++misses_;
      ASSIGN_OR_RETURN(Prepared* const prepared, Find(slot, slot.running));
      RETURN_IF_ERROR(Start(slot, *prepared));
      RETURN_IF_ERROR(slot.stream.Synchronize());
    }
    std::copy_n(static_cast<const float*>(slot.logits.data()),
                slot.running * classes_, slot.out);
    slot.running = 0;
    return absl::OkStatus();
  }

  // The driver is asked now and then, since logits may be like kNotThere, or
  // never come.
  static absl::Status WaitForLogits(const Slot& slot, int64_t logits) {
    const auto* const words =
        static_cast<const volatile uint32_t*>(slot.logits.data());
    int looks = 0;
    for (int64_t i = logits; i-- > 0;) {
      while (words[i] == kNotThere) {
        if (++looks % kLooks != 0) continue;
        ASSIGN_OR_RETURN(const bool ended, slot.stream.HasEnded());
        if (ended) return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Prepared*> Find(Slot& slot, int64_t count) const {
    const auto found = slot.prepared.find(count);
    if (found != slot.prepared.end()) return &found->second;
    if (slot.prepared.size() >= kMostPrepared) slot.prepared.clear();
    Prepared made;
    ASSIGN_OR_RETURN(made.convolutions, stages_->MakeConvolutions(count));
    return &slot.prepared.emplace(count, std::move(made)).first->second;
  }

  // Starts the slot's piece. The first time its work is queued as it is, which
  // loads the kernels; then it is recorded.
  absl::Status Start(Slot& slot, Prepared& prepared) const {
    const auto queue = [&] {
      return QueuePiece(slot, prepared, slot.running, slot.source, {});
    };
    if (!prepared.ran[slot.source]) {
      prepared.ran[slot.source] = true;
      return queue();
    }
    std::optional<cuda::Graph>& graph = prepared.graphs[slot.source];
    if (!graph.has_value()) {
      ASSIGN_OR_RETURN(graph, cuda::Graph::Record(slot.stream, queue));
    }
    return graph->Launch(slot.stream);
  }

  absl::Status QueuePiece(
      Slot& slot, const Prepared& prepared, int64_t count, Source source,
      const std::function<absl::Status(size_t)>& passed) const {
    const bool few = count <= kFewImages;
    auto* const images = static_cast<uint8_t*>(few ? slot.images.data()
                                                   : slot.device_images.data());
    auto* const logits = static_cast<float*>(few ? slot.logits.data()
                                                 : slot.device_logits.data());
    CUstream_st* const stream = slot.stream.get();
    const int64_t bytes = count * image_bytes_;
    if (source == kArriving) {
      RETURN_IF_ERROR(
          slot.upload.Queue(bytes, slot.images.data(), images, stream));
    } else if (source == kPinned && !few) {
      RETURN_IF_ERROR(
          cuda::QueueCopy(images, slot.images.data(), bytes, stream));
    }
    if (passed) RETURN_IF_ERROR(passed(0));
    RETURN_IF_ERROR(stages_->Queue(count, images, logits, slot.memory,
                                   prepared.convolutions, stream, passed));
    if (few) return absl::OkStatus();
    return cuda::QueueCopy(slot.logits.data(), logits,
                           count * classes_ * kFloat, stream);
  }

  // A slot that had a piece of so many images, and so has as many to read.
  Slot& SlotOf(int64_t count) const {
    for (const auto& slot : slots_) {
      if (slot->prepared.count(count) > 0) return *slot;
    }
    return *slots_[0];
  }

  // The nanoseconds of the enlarging and each stage for the images that are in
  // a slot: the least of several passes.
  absl::StatusOr<std::vector<int64_t>> TimeStages(int64_t count) const {
    constexpr int kPasses = 5;
    Slot& slot = SlotOf(count);
    ASSIGN_OR_RETURN(Prepared* const prepared, Find(slot, count));
    const Source source = in_place_ && count > kFewImages ? kOnDevice : kPinned;
    std::vector<int64_t> least(plan_.stages.size() + 1, 0);
    for (int pass = 0; pass < kPasses; ++pass) {
      std::vector<std::pair<size_t, cuda::Event>> events;
      const auto passed = [&](size_t stage) -> absl::Status {
        ASSIGN_OR_RETURN(cuda::Event event, cuda::Event::Create());
        RETURN_IF_ERROR(event.Record(slot.stream.get()));
        events.emplace_back(stage, std::move(event));
        return absl::OkStatus();
      };
      RETURN_IF_ERROR(QueuePiece(slot, *prepared, count, source, passed));
      RETURN_IF_ERROR(slot.stream.Synchronize());
      for (size_t i = 1; i < events.size(); ++i) {
        ASSIGN_OR_RETURN(const int64_t ns,
                         events[i].second.Since(events[i - 1].second));
        int64_t& known = least[events[i].first];
        known = pass == 0 ? ns : std::min(known, ns);
      }
    }
    return least;
  }

  const Plan plan_;
  const std::unique_ptr<GpuStages> stages_;
  const int64_t image_bytes_;
  const int64_t classes_;
  const int64_t piece_;
  const bool writes_logits_once_;
  Workers& workers_;
  std::vector<std::unique_ptr<Slot>> slots_;
  int misses_ = 0;         // in a row
  bool in_place_ = false;  // whether the last call's images were pinned
  std::map<int64_t, int64_t> images_of_;  // all, in pieces of each size
  int64_t all_images_ = 0;
};

}  // namespace

absl::StatusOr<int64_t> GpuPieceImages(const Network& network) {
  RETURN_IF_ERROR(CheckNetwork(network));
  RETURN_IF_ERROR(cuda::FindDevice().status());
  return GpuStages::PieceImages(network, GpuStages::kMostImages);
}

absl::StatusOr<std::unique_ptr<CompiledNetwork>> CompileForGpu(
    const Network& network, const NetworkWeights& weights, int image_size,
    Workers& workers) {
  ASSIGN_OR_RETURN(const int64_t piece, GpuPieceImages(network));
  return CompileForGpuInPieces(network, weights, image_size, piece, workers);
}

absl::StatusOr<std::unique_ptr<CompiledNetwork>> CompileForGpuInPieces(
    const Network& network, const NetworkWeights& weights, int image_size,
    int64_t piece_images, Workers& workers) {
  RETURN_IF_ERROR(CheckNetwork(network));
  RETURN_IF_ERROR(CheckWeights(network, weights));
  RETURN_IF_ERROR(CheckImages(network, {1, image_size, image_size, {}}));
  RETURN_IF_ERROR(cuda::FindDevice().status());
  Plan plan = MakePlan(network);
  ASSIGN_OR_RETURN(auto stages, GpuStages::Create(network, plan, weights,
                                                  image_size, workers));
  auto compiled = std::make_unique<GpuCompiled>(
      std::move(plan), std::move(stages), int64_t{image_size} * image_size,
      network.Classes(), piece_images, workers);
  RETURN_IF_ERROR(compiled->MakeSlot());
  return compiled;
}

}  // namespace convlab
