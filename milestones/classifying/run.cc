#include "milestones/classifying/run.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/accuracy/accuracy.h"
#include "common/files/files.h"
#include "common/hash/hash.h"
#include "common/parallel/parallel.h"
#include "common/ranks/binding.h"
#include "common/ranks/ranks.h"
#include "common/record/run_record.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "common/weights/weights.h"
#include "kernels/simd/cpu_target.h"
#include "milestones/classifying/answers.h"
#include "milestones/classifying/dealt_run.h"
#include "milestones/classifying/device.h"
#include "milestones/classifying/input.h"
#include "milestones/classifying/interrupt.h"
#include "milestones/classifying/options.h"
#include "milestones/classifying/output.h"
#include "milestones/classifying/rank_messages.h"
#include "milestones/classifying/rank_worker.h"
#include "milestones/classifying/stream.h"
#include "milestones/counts.h"
#include "milestones/model.h"

namespace convlab {
namespace {

// The output that is to be given up when the program is interrupted.
class Unfinished {
 public:
  explicit Unfinished(const std::unique_ptr<Ranks>& ranks) : ranks_(ranks) {}

  void Set(Output* output) {
    const std::lock_guard<std::mutex> lock(mutex_);
    output_ = output;
  }

  // Ends with the mutex locked, so that nothing is begun any more.
  void CleanUp() {
    mutex_.lock();
    const std::string kept = output_ == nullptr ? "" : output_->GiveUp();
    // Those of an output that is still being made, too.
    AbandonTemporaryFiles();
    if (Ranks::EnvironmentRank() > 0) return;
    std::string text = "interrupted";
    // mpirun ends all ranks when one has died.
    if (output_ != nullptr) {
      for (const int rank : ranks_->FindEnded()) {
        const RankPlace& place = ranks_->place(rank);
        absl::StrAppend(&text, "; ", ranks_->Name(rank), ", process ",
                        place.process, ", has ended");
      }
    }
    Tell(absl::StrCat(text, kept.empty() ? "" : "; ", kept));
  }

 private:
  const std::unique_ptr<Ranks>& ranks_;
  std::mutex mutex_;
  Output* output_ = nullptr;
};

// SHA-256 over the weights that the network has, whatever file they are from.
std::string DigestOf(const NetworkWeights& weights) {
  std::string digests;
  const auto add = [&](const std::vector<float>& values) {
    digests += Sha256({reinterpret_cast<const char*>(values.data()),
                       values.size() * sizeof(float)});
  };
  for (const LayerWeights& layer : weights.layers) {
    add(layer.weight);
    add(layer.bias);
  }
  return Sha256(digests);
}

absl::StatusOr<OutputOptions> OutputFor(const ClassifyOptions& options,
                                        const ClassifyInput& input,
                                        const NetworkWeights& weights,
                                        const ClassifyDevice& device,
                                        int64_t count, int64_t block,
                                        int64_t gpu_piece) {
  OutputOptions output = {
      options.out,    options.format, options.model.network->Classes(),
      options.logits, options.resume, {}};
  constexpr int64_t kMostIdx = (int64_t{1} << 31) - 1;
  if (!options.out.empty() && options.format == AnswersFormat::kIdx &&
      count > kMostIdx) {
    return absl::InvalidArgumentError(
        absl::StrCat("an IDX file has at most ", kMostIdx,
                     " answers, expected a name of "
                     "--out that ends with .csv or .npy for ",
                     count));
  }
  if (!options.resume) {
    output.of.count = count;
    return output;
  }
  ASSIGN_OR_RETURN(const std::string images, input.images->Digest());
  // On the CPU an image's answer does not depend on its piece.
  output.of = {options.model.network->name,
               DigestOf(weights),
               images,
               device.model,
               count,
               device.gpu ? block : 0,
               gpu_piece,
               options.logits ? "logits" : "labels"};
  return output;
}

// Judges the number of correct labels as a milestone does, where the weight
// file may state it: of a folder's images, with the folder's labels.
absl::Status JudgeCount(const ClassifyOptions& options,
                        const NetworkWeights& weights, int64_t count,
                        int64_t correct) {
  RunRecord record;
  record.split = options.split;
  record.size = count;
  record.weights_metadata = weights.metadata;
  absl::Status judged =
      JudgeCounts({correct}, MaxChangedAnswers(AccuracyClass::kFp32),
                  options.strict, record);
  // What is no failure is told; FinishProgram tells failures.
  if (judged.ok() && !record.count_error.empty()) Tell(record.count_error);
  return judged;
}

// A GPU alone has several readers, and of plain files alone.
absl::Status CheckReaders(const DealtRun& run) {
  if (run.options.readers == 0) return absl::OkStatus();
  if (!run.gpu()) {
    return absl::InvalidArgumentError(
        "--readers is of GPUs, and this runs on the CPU: expected a GPU, or no "
        "--readers");
  }
  if (run.input.images->random_access()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--readers is of plain files, and ", run.input.images->name(),
      " is read forward by one: expected no --readers"));
}

// Everything before the first image, but the output.
absl::Status Prepare(const std::string& program, DealtRun& run) {
  const ClassifyOptions& options = run.options;
  RETURN_IF_ERROR(ForceCpuTarget(options.cpu_target));
  ASSIGN_OR_RETURN(run.devices, ChooseDevices(options, run.ranks.local_rank()));
  for (const std::string& file : {options.plan_svg, options.record}) {
    if (!file.empty()) RETURN_IF_ERROR(CheckWritable(file));
  }
  ASSIGN_OR_RETURN(run.input, OpenInput(options));
  RETURN_IF_ERROR(CheckReaders(run));
  run.count = options.size.value_or(run.input.images->count());
  ASSIGN_OR_RETURN(const std::string weights_file,
                   WeightsFile(options.model, options.weights, program));
  ASSIGN_OR_RETURN(run.weights, ReadWeights(options.model, weights_file));
  run.block = PieceImages(run.gpu(), run.count, run.image_bytes(),
                          run.devices[0].threads);
  run.gpu_piece = GpuPieceOf(run.devices, run.network());
  if (!options.read_each || run.input.images->random_access()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(run.input.images->name(),
                   " is not a plain file, expected one with --read each"));
}

// Tells the other ranks what to do; nothing, if this one is not `ready`.
absl::Status BroadcastJob(DealtRun& run, bool ready) {
  RankJob job;
  job.ok = ready;
  if (ready) {
    job.block = run.block;
    job.gpu_piece = run.gpu_piece;
    job.image_size = run.input.images->width();
    job.readers = run.readers();
    if (run.options.read_each) {
      ASSIGN_OR_RETURN(job.images, run.input.images->Digest());
    } else {
      // A slot for each piece of a rank that has as many workers as this one.
      run.slots = RankSlots::Make(
          run.ranks,
          PiecesOf(job.readers) * static_cast<int>(run.devices.size()),
          run.block * run.image_bytes());
      job.shared = run.slots.handle();
      job.slots = run.slots.count();
    }
  }
  std::string bytes = PackJob(job);
  RETURN_IF_ERROR(run.ranks.Broadcast(bytes));
  if (!ready) return absl::OkStatus();
  bytes = PackWeights(run.weights);
  return run.ranks.Broadcast(bytes);
}

// How the ranks end, after the program has printed everything.
struct Ending {
  std::unique_ptr<Ranks> ranks;
  bool in_order = true;
};

// Rank 0, or the only one.
absl::Status Classify(const std::vector<std::string>& command,
                      const ClassifyOptions& options, Unfinished& unfinished,
                      Ending& ending) {
  DealtRun run = {
      options,
      command,
      absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()),
      *ending.ranks,
      {},
      {},
      {}};
  absl::Status ready = Prepare(command.front(), run);
  std::unique_ptr<Output> output;
  const bool counted = options.labels.empty() && !run.input.labels.empty();
  if (ready.ok()) {
    ready = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(
          const OutputOptions output_options,
          OutputFor(options, run.input, run.weights, run.devices[0], run.count,
                    run.block, run.gpu_piece));
      ASSIGN_OR_RETURN(
          output,
          Output::Open(output_options, Answers(run.network().Classes(),
                                               std::move(run.input.labels))));
      if (options.resume) run.gpu_piece = output->gpu_piece();
      return absl::OkStatus();
    }();
  }
  const absl::Status told = BroadcastJob(run, ready.ok());
  RETURN_IF_ERROR(ready);
  ending.in_order = false;
  RETURN_IF_ERROR(told);
  unfinished.Set(output.get());
  if (options.model.onnx != nullptr) {
    for (const std::string& note : options.model.onnx->notes) Tell(note);
  }
  for (const ClassifyDevice& device : run.devices) {
    Tell(absl::StrCat("running on ", device.text));
  }
  bool lost_any = false;
  absl::Status status =
      CatchRefusals([&] { return ClassifyDealt(run, *output, lost_any); });
  unfinished.Set(nullptr);
  if (!status.ok()) {
    const std::string kept = output->GiveUp();
    if (options.resume && !kept.empty()) Tell(kept);
    return status;
  }
  ending.in_order = !lost_any;
  if (!counted) return absl::OkStatus();
  return JudgeCount(options, run.weights, run.count,
                    output->answers().correct());
}

absl::Status ParseAndClassify(const std::vector<std::string>& command,
                              Ending& ending) {
  absl::StatusOr<ClassifyOptions> options =
      ParseClassifyOptions({command.begin() + 1, command.end()});
  const bool first = Ranks::EnvironmentRank() <= 0;
  if (!options.ok()) {
    // All ranks have the same arguments, and rank 0 tells what is wrong with
    // them, whereupon the others are ended. One that is still there has an
    // error of its own, such as a host without the model's file.
    if (!first) std::this_thread::sleep_for(kRankPatience);
    return options.status();
  }
  if (options->help) {
    if (first) std::fputs(ClassifyHelp().c_str(), stdout);
    return absl::OkStatus();
  }
  int left = 0;
  options->threads = ThreadsOfRank(options->threads, &left);
  if (left > 0 && Ranks::EnvironmentRank() == 0) {
    Tell(absl::StrCat("rank 0 runs on all ", Workers::Available(),
                      " CPUs that mpirun has, not on the ", left,
                      " to which it was bound, and so do the others (mpirun "
                      "--bind-to core binds them)"));
  }
  // Before any other thread begins, those of the CUDA driver and of MPI too,
  // which would take the signals.
  Unfinished unfinished(ending.ranks);
  const InterruptGuard guard([&] { unfinished.CleanUp(); });
  ASSIGN_OR_RETURN(ending.ranks, Ranks::Join());
  const absl::Status same = ending.ranks->CheckSamePrograms();
  if (!same.ok()) return ending.ranks->rank() == 0 ? same : absl::OkStatus();
  if (ending.ranks->rank() == 0) {
    return Classify(command, *options, unfinished, ending);
  }
  return WorkForRankZero(*options, *ending.ranks, ending.in_order);
}

}  // namespace

int RunClassify(int argc, char** argv) {
  Ending ending;
  const int status = RunMain("classify", [&] {
    return ParseAndClassify({argv, argv + argc}, ending);
  });
  if (ending.ranks == nullptr || ending.ranks->size() == 1) return status;
  if (!ending.in_order) ending.ranks->Abandon(status);
  const int left = FinishProgram("classify", ending.ranks->Leave());
  return status != 0 ? status : left;
}

}  // namespace convlab
