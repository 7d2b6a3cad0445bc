#include "milestones/classifying/run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/accuracy/accuracy.h"
#include "common/files/files.h"
#include "common/hash/hash.h"
#include "common/record/build_info.h"
#include "common/record/classify_record.h"
#include "common/record/host.h"
#include "common/record/run_record.h"
#include "common/record/usage.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "common/weights/weights.h"
#include "kernels/compiled/plan.h"
#include "kernels/cuda/device.h"
#include "kernels/simd/cpu_target.h"
#include "milestones/classifying/answers.h"
#include "milestones/classifying/deal.h"
#include "milestones/classifying/device.h"
#include "milestones/classifying/input.h"
#include "milestones/classifying/interrupt.h"
#include "milestones/classifying/options.h"
#include "milestones/classifying/output.h"
#include "milestones/classifying/plan_report.h"
#include "milestones/classifying/stream.h"
#include "milestones/counts.h"
#include "milestones/model.h"
#include "milestones/progress.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

// Pieces for each worker that may be dealt and not yet written.
constexpr int64_t kWindow = 8;
// Threads that read for a GPU, which computes about as fast as one copies from
// the page cache.
constexpr int kGpuReaders = 2;

void Tell(const std::string& text) {
  absl::FPrintF(stderr, "classify: %s\n", OneLine(text));
}

// What is left to do when the program is interrupted.
// The output that is to be given up when the program is interrupted.
class Unfinished {
 public:
  void Set(Output* output) {
    const std::lock_guard<std::mutex> lock(mutex_);
    output_ = output;
  }

  // Ends with the mutex locked, so that nothing is begun any more.
  void CleanUp() {
    mutex_.lock();
    const std::string kept = output_ == nullptr ? "" : output_->GiveUp();
    Tell(absl::StrCat("interrupted", kept.empty() ? "" : "; ", kept));
  }

 private:
  std::mutex mutex_;
  Output* output_ = nullptr;
};

absl::Status TellPlan(const ClassifyOptions& options, int image_size,
                      const ClassifyDevice& device,
                      const WorkerResult& result) {
  if (!options.plan && options.plan_svg.empty()) return absl::OkStatus();
  const Network& network = *options.model.network;
  ASSIGN_OR_RETURN(const Rates rates, MeasureRates(device));
  const PlanReport report =
      ReportPlan(network, MakePlan(network), result.share.images, image_size,
                 result.stage_ns, device.text, rates);
  if (options.plan) std::fputs(PlanTable(report).c_str(), stdout);
  if (options.plan_svg.empty()) return absl::OkStatus();
  return WriteFileAtomically(options.plan_svg, PlanPicture(report));
}

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
                                        const NetworkWeights& weights, bool gpu,
                                        int64_t count, int64_t block) {
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
               gpu ? "gpu" : "cpu",
               count,
               gpu ? block : 0,
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

// What there is before the first image is read.
struct Run {
  const ClassifyOptions& options;
  const std::vector<std::string>& command;
  std::vector<ClassifyDevice> devices;
  ClassifyInput input;
  NetworkWeights weights;
  int64_t count = 0, block = 0;  // images

  bool gpu() const { return devices[0].gpu; }
  const Network& network() const { return *options.model.network; }
};

DealOptions DealFor(const Run& run, int64_t done) {
  DealOptions deal;
  deal.first = done;
  deal.count = run.count;
  deal.block = run.block;
  // What a worker reads ahead, and as much again for one that is late.
  deal.window = kWindow * static_cast<int64_t>(run.devices.size());
  deal.tolerate = run.options.tolerate;
  deal.tell = Tell;
  return deal;
}

void TellShares(const ClassifyRecord& record) {
  const double seconds = record.run_ns * 1e-9;
  const int64_t images = record.images - record.resumed;
  int64_t read_ns = 0, compute_ns = 0, compile_ns = 0;
  for (const ClassifyShare& share : record.shares) {
    read_ns += share.read_ns;
    compute_ns += share.compute_ns;
    compile_ns = std::max(compile_ns, share.compile_ns);
    if (record.shares.size() == 1) break;
    Tell(absl::StrFormat("%s: %d images in %d pieces, computing %.3f s%s",
                         share.device, share.images, share.pieces,
                         share.compute_ns * 1e-9,
                         share.lost.empty() ? "" : ", then lost"));
  }
  Tell(absl::StrFormat(
      "%d images in %.3f s, %.0f per second; reading %.3f s, computing %.3f s "
      "and writing %.3f s at the same time; compiling before that %.3f s; at "
      "most %d MB of memory",
      images, seconds, images / seconds, read_ns * 1e-9, compute_ns * 1e-9,
      record.write_ns * 1e-9, compile_ns * 1e-9,
      record.max_resident_bytes / 1000000));
}

absl::Status WriteRecord(const Run& run, ClassifyRecord& record) {
  if (run.options.record.empty()) return absl::OkStatus();
  record.command = run.command;
  record.git_revision = kGitRevision;
  record.build_mode = kBuildMode;
  record.host = ReadHostFacts();
  record.network = run.network().name;
  if (run.gpu()) {
    ASSIGN_OR_RETURN(const auto links, cuda::PeerLinks());
    for (const cuda::PeerLink& link : links) {
      record.links.push_back(
          {0, link.from, link.to, link.access, link.atomics, link.rank});
    }
  }
  return WriteFileAtomically(run.options.record, ToJson(record));
}

// Deals the images to the devices and writes the answers.
absl::Status Stream(const Run& run, Output& output, ClassifyRecord& record,
                    std::vector<WorkerResult>& results) {
  const ClassifyOptions& options = run.options;
  record.images = run.count;
  record.block = run.block;
  record.resumed = output.done();
  record.reading = "rank 0";
  if (record.resumed > 0) {
    Tell(absl::StrCat("going on behind image ", record.resumed, " of ",
                      run.count));
  }
  Deal deal(*run.input.images, DealFor(run, output.done()));
  std::vector<int> numbers;
  for (size_t i = 0; i < run.devices.size(); ++i) {
    numbers.push_back(deal.AddWorker(run.devices[i].text, static_cast<int>(i)));
  }
  const WorkerJob job = {
      run.network(),
      run.weights,
      run.input.images->width(),
      {run.network().Classes(), options.logits,
       run.gpu() && run.input.images->random_access() ? kGpuReaders : 1},
      options.plan || !options.plan_svg.empty(),
      {}};
  LocalWorkers workers(run.devices, job, deal, numbers);
  workers.WaitReady();
  const Clock::time_point begin = Clock::now();
  workers.Begin();
  absl::StatusOr<int64_t> write_ns;
  {
    ProgressBar bar;
    write_ns = WriteAnswers(deal, output, [&](int64_t done) {
      bar.Show(static_cast<double>(done) / run.count);
    });
  }
  record.run_ns = std::chrono::nanoseconds(Clock::now() - begin).count();
  results = workers.Join();
  for (const WorkerResult& result : results) {
    record.shares.push_back(result.share);
  }
  RETURN_IF_ERROR(write_ns.status());
  record.write_ns = *write_ns;
  return output.Finish();
}

absl::Status ClassifyInto(const Run& run, Output& output,
                          ClassifyRecord& record) {
  std::vector<WorkerResult> results;
  RETURN_IF_ERROR(Stream(run, output, record, results));
  record.max_resident_bytes = CurrentUsage().max_resident_bytes;
  const Answers& answers = output.answers();
  if (answers.has_labels()) record.correct = answers.correct();
  TellShares(record);
  for (const std::string& line : answers.Text()) std::puts(line.c_str());
  for (const std::string& line : answers.CloseText()) std::puts(line.c_str());
  for (size_t i = 0; i < results.size(); ++i) {
    // Of the first worker that has times; the others do the same.
    if (results[i].stage_ns.empty()) continue;
    RETURN_IF_ERROR(TellPlan(run.options, run.input.images->width(),
                             run.devices[i], results[i]));
    break;
  }
  return WriteRecord(run, record);
}

absl::Status Classify(const std::vector<std::string>& command,
                      const ClassifyOptions& options) {
  // Before any other thread begins, those of the CUDA driver too, which would
  // take the signals.
  Unfinished unfinished;
  const InterruptGuard guard([&] { unfinished.CleanUp(); });
  ClassifyRecord record;
  record.started =
      absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
  RETURN_IF_ERROR(ForceCpuTarget(options.cpu_target));
  Run run = {options, command, {}, {}, {}};
  ASSIGN_OR_RETURN(run.devices, ChooseDevices(options, /*local_rank=*/0));
  for (const std::string& file : {options.plan_svg, options.record}) {
    if (!file.empty()) RETURN_IF_ERROR(CheckWritable(file));
  }
  ASSIGN_OR_RETURN(run.input, OpenInput(options));
  const ImageFiles& images = *run.input.images;
  run.count = options.size.value_or(images.count());
  ASSIGN_OR_RETURN(
      const std::string weights_file,
      WeightsFile(options.model, options.weights, command.front()));
  ASSIGN_OR_RETURN(run.weights, ReadWeights(options.model, weights_file));
  run.block = PieceImages(run.gpu(), run.count,
                          int64_t{images.height()} * images.width(),
                          run.devices[0].threads);
  ASSIGN_OR_RETURN(const OutputOptions output_options,
                   OutputFor(options, run.input, run.weights, run.gpu(),
                             run.count, run.block));
  const bool counted = options.labels.empty() && !run.input.labels.empty();
  ASSIGN_OR_RETURN(
      const auto output,
      Output::Open(output_options, Answers(run.network().Classes(),
                                           std::move(run.input.labels))));
  unfinished.Set(output.get());
  if (options.model.onnx != nullptr) {
    for (const std::string& note : options.model.onnx->notes) Tell(note);
  }
  for (const ClassifyDevice& device : run.devices) {
    Tell(absl::StrCat("running on ", device.text));
  }
  const absl::Status status = ClassifyInto(run, *output, record);
  unfinished.Set(nullptr);
  if (!status.ok()) {
    const std::string kept = output->GiveUp();
    if (options.resume && !kept.empty()) Tell(kept);
    return status;
  }
  if (!counted) return absl::OkStatus();
  return JudgeCount(options, run.weights, run.count,
                    output->answers().correct());
}

absl::Status ParseAndClassify(const std::vector<std::string>& command) {
  ASSIGN_OR_RETURN(const ClassifyOptions options,
                   ParseClassifyOptions({command.begin() + 1, command.end()}));
  if (options.help) {
    std::fputs(ClassifyHelp().c_str(), stdout);
    return absl::OkStatus();
  }
  return Classify(command, options);
}

}  // namespace

int RunClassify(int argc, char** argv) {
  return RunMain("classify", [&] {
    return ParseAndClassify({argv, argv + argc});
  });
}

}  // namespace convlab
