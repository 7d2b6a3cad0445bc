#include "milestones/classifying/rank_worker.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "kernels/cuda/device.h"
#include "kernels/simd/cpu_target.h"
#include "milestones/classifying/device.h"
#include "milestones/classifying/input.h"
#include "milestones/classifying/rank_feed.h"
#include "milestones/classifying/rank_messages.h"
#include "milestones/classifying/rank_slots.h"
#include "milestones/classifying/stream.h"

namespace convlab {
namespace {

// What this rank has before it begins.
struct Prepared {
  std::vector<ClassifyDevice> devices;
  ClassifyInput input;  // if it reads
};

absl::Status Prepare(const ClassifyOptions& options, const RankJob& job,
                     int local_rank, Prepared& prepared) {
  RETURN_IF_ERROR(ForceCpuTarget(options.cpu_target));
  ASSIGN_OR_RETURN(prepared.devices, ChooseDevices(options, local_rank));
  if (!options.read_each) return absl::OkStatus();
  ASSIGN_OR_RETURN(prepared.input, OpenInput(options));
  ASSIGN_OR_RETURN(const std::string digest, prepared.input.images->Digest());
  if (digest == job.images) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(prepared.input.images->name(), " is not what rank 0 reads"));
}

// Page-locked, so that a GPU takes images from there; where the system refuses,
// they are copied first.
cuda::PinnedRange LockSlots(const RankSlots& slots,
                            const ClassifyDevice& device, int rank) {
  if (!device.gpu || slots.count() == 0) return {};
  const cuda::CurrentDevice current(device.index);
  if (!current.status().ok()) return {};
  auto range = cuda::PinnedRange::Lock(slots.Find(rank, 0), slots.bytes());
  return range.ok() ? *std::move(range) : cuda::PinnedRange();
}

// Computes pieces until there are no more, and sends what was done.
void Work(const ClassifyOptions& options, const RankJob& job,
          const NetworkWeights& weights, const Prepared& prepared,
          const RankSlots& slots, Ranks& ranks, RankFeed& feed) {
  const Network& network = *options.model.network;
  const int64_t piece_bytes = job.block * job.image_size * job.image_size;
  const WorkerJob worker_job = {
      network,          weights,
      job.image_size,   {network.Classes(), options.logits, job.readers},
      /*stages=*/false, options.read_each ? piece_bytes : 0,
      job.gpu_piece,    {}};
  const cuda::PinnedRange pinned =
      LockSlots(slots, prepared.devices[0], ranks.rank());
  std::vector<int> numbers;
  for (size_t i = 0; i < prepared.devices.size(); ++i) {
    numbers.push_back(static_cast<int>(i));
    ranks.Send(0, kWorkerMessage,
               PackText(numbers.back(), prepared.devices[i].text));
  }
  LocalWorkers workers(prepared.devices, worker_job, feed, numbers);
  workers.WaitReady();
  ranks.Send(0, kReadyMessage, PackText(-1, ""));
  workers.Begin();
  std::vector<WorkerResult> results = workers.Join();
  for (size_t i = 0; i < results.size(); ++i) {
    WorkerResult& result = results[i];
    result.share.shared_pieces = feed.SharedPieces(numbers[i]);
    result.share.rank = ranks.rank();
    result.share.host = ranks.place(ranks.rank()).host;
    ranks.Send(0, kShareMessage, PackText(numbers[i], ToJson(result.share)));
  }
}

}  // namespace

absl::Status WorkForRankZero(const ClassifyOptions& options, Ranks& ranks,
                             bool& in_order) {
  std::string bytes;
  RETURN_IF_ERROR(ranks.Broadcast(bytes));
  ASSIGN_OR_RETURN(const RankJob job, UnpackJob(bytes));
  if (!job.ok) return absl::OkStatus();
  in_order = false;
  RETURN_IF_ERROR(ranks.Broadcast(bytes));
  ASSIGN_OR_RETURN(const NetworkWeights weights, UnpackWeights(bytes));
  Prepared prepared;
  const absl::Status ready =
      Prepare(options, job, ranks.local_rank(), prepared);
  const RankSlots slots =
      RankSlots::Join(ranks, job, job.block * job.image_size * job.image_size);
  RankFeed feed(ranks, prepared.input.images.get(), slots);
  if (ready.ok()) {
    Work(options, job, weights, prepared, slots, ranks, feed);
  } else {
    ranks.Send(0, kLoseMessage, PackText(-1, ready.message()));
  }
  ranks.Send(0, kDoneMessage, PackText(-1, ""));
  const RankFeed::Ending ending = feed.WaitForEnd();
  in_order = ending.end == kInOrder;
  if (ending.status.ok() && ending.end == kRunFailed) {
    // Rank 0 ends this process. One that ended by itself would be taken for the
    // cause.
    std::this_thread::sleep_for(kRankPatience);
  }
  return ending.status;
}

}  // namespace convlab
