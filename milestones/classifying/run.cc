#include "milestones/classifying/run.h"

#include <sys/stat.h>

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
#include "common/accuracy/accuracy.h"
#include "common/dataset/fashion_mnist.h"
#include "common/files/files.h"
#include "common/record/run_record.h"
#include "common/record/usage.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "common/weights/weights.h"
#include "kernels/compiled/compiled.h"
#include "kernels/inference/inference.h"
#include "kernels/simd/cpu_target.h"
#include "milestones/classifying/answers.h"
#include "milestones/classifying/answers_file.h"
#include "milestones/classifying/device.h"
#include "milestones/classifying/interrupt.h"
#include "milestones/classifying/options.h"
#include "milestones/classifying/plan_report.h"
#include "milestones/classifying/stream.h"
#include "milestones/counts.h"
#include "milestones/model.h"
#include "milestones/progress.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

// Images of a block: many, so that all threads have several batches, but less
// than this memory.
constexpr int64_t kBlockImages = 4096, kThreadImages = 256;
constexpr int64_t kBlockBytes = 64 << 20;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Tell(const std::string& text) {
  absl::FPrintF(stderr, "classify: %s\n", OneLine(text));
}

// What is left to do when the program is interrupted.
class Unfinished {
 public:
  void Write(const std::string& path, const std::string& temporary) {
    const std::lock_guard<std::mutex> lock(mutex_);
    path_ = path;
    temporary_ = temporary;
  }

  // Ends with the mutex locked, so that nothing is begun any more.
  void CleanUp() {
    mutex_.lock();
    if (!temporary_.empty()) std::remove(temporary_.c_str());
    Tell(absl::StrCat("interrupted", path_.empty() ? "" : "; there is no new ",
                      path_));
  }

 private:
  std::mutex mutex_;
  std::string path_, temporary_;
};

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Opens the input, and reads the labels if there are any.
absl::StatusOr<DatasetStream> OpenInput(const ClassifyOptions& options) {
  DatasetStream data;
  // Where the default folder is missing, the error tells how to get it.
  if (IsFolder(options.input) ||
      options.input == UserPath(FashionMnistFolder())) {
    ASSIGN_OR_RETURN(data, OpenFashionMnist(options.input, options.split));
  } else {
    auto images = IdxImageStream::Open(options.input);
    if (absl::IsNotFound(images.status())) {
      return Annotate(images.status(),
                      "neither the name of a network nor an input");
    }
    ASSIGN_OR_RETURN(data.images, std::move(images));
  }
  if (!options.labels.empty()) {
    ASSIGN_OR_RETURN(data.labels, ReadIdxLabels(options.labels));
    if (static_cast<int64_t>(data.labels.size()) != data.images->count()) {
      return absl::InvalidArgumentError(absl::StrCat(
          options.labels, " has ", data.labels.size(), " labels, expected ",
          data.images->count(), ", one for each image"));
    }
  }
  RETURN_IF_ERROR(
      Annotate(CheckImages(*options.model.network, {data.images->count(),
                                                    data.images->height(),
                                                    data.images->width(),
                                                    {}}),
               options.input == "-" ? "standard input" : options.input));
  if (options.size.value_or(1) > data.images->count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("size is ", *options.size, ", expected 1 to ",
                     data.images->count(), ", the images of the input"));
  }
  return data;
}

absl::Status TellPlan(const ClassifyOptions& options,
                      const CompiledNetwork& compiled, int64_t count,
                      int image_size, const ClassifyDevice& device,
                      Workers& workers) {
  if (!options.plan && options.plan_svg.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Rates rates, MeasureRates(device, workers));
  const PlanReport report = ReportPlan(
      *options.model.network, compiled.plan(), count, image_size,
      compiled.StageNs(), compiled.StageKernels(), device.text, rates);
  if (options.plan) std::fputs(PlanTable(report).c_str(), stdout);
  if (options.plan_svg.empty()) return absl::OkStatus();
  return WriteFileAtomically(options.plan_svg, PlanPicture(report));
}

absl::StatusOr<StreamTimes> RunStream(const ClassifyOptions& options,
                                      IdxImageStream& images, int64_t count,
                                      CompiledNetwork& compiled,
                                      Answers& answers, AnswersFile* file) {
  ProgressBar bar;
  StreamOptions stream;
  stream.count = count;
  stream.block = std::max<int64_t>(
      1, std::min(std::max(kBlockImages, kThreadImages * options.threads),
                  kBlockBytes / (int64_t{images.height()} * images.width())));
  stream.classes = options.model.network->Classes();
  stream.logits = options.logits;
  stream.progress = [&](int64_t done) {
    bar.Show(static_cast<double>(done) / count);
  };
  return ClassifyStream(images, compiled, stream, answers, file);
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

absl::Status Classify(const std::string& program,
                      const ClassifyOptions& options) {
  // Before any other thread begins, those of the CUDA driver too, which would
  // take the signals.
  Unfinished unfinished;
  const InterruptGuard guard([&] { unfinished.CleanUp(); });
  RETURN_IF_ERROR(ForceCpuTarget(options.cpu_target));
  ASSIGN_OR_RETURN(const ClassifyDevice device, ChooseDevice(options));
  if (!options.plan_svg.empty()) {
    RETURN_IF_ERROR(CheckWritable(options.plan_svg));
  }
  const Network& network = *options.model.network;
  ASSIGN_OR_RETURN(DatasetStream data, OpenInput(options));
  const int64_t count = options.size.value_or(data.images->count());
  ASSIGN_OR_RETURN(const std::string weights_file,
                   WeightsFile(options.model, options.weights, program));
  ASSIGN_OR_RETURN(const NetworkWeights weights,
                   ReadWeights(options.model, weights_file));
  std::unique_ptr<AnswersFile> file;
  if (!options.out.empty()) {
    ASSIGN_OR_RETURN(
        file, AnswersFile::Create(options.out, options.format, count,
                                  options.logits ? network.Classes() : 0));
    unfinished.Write(options.out, file->temporary_path());
  }
  if (options.model.onnx != nullptr) {
    for (const std::string& note : options.model.onnx->notes) Tell(note);
  }
  Tell(absl::StrCat("running on ", device.text));
  Workers workers(options.threads);
  const Clock::time_point start = Clock::now();
  const int image_size = data.images->width();
  ASSIGN_OR_RETURN(const auto compiled,
                   Compile(device, network, weights, image_size, workers));
  const double compile_seconds = SecondsSince(start);
  const bool counted = options.labels.empty() && !data.labels.empty();
  Answers answers(network.Classes(), std::move(data.labels));
  const Clock::time_point begin = Clock::now();
  ASSIGN_OR_RETURN(
      const StreamTimes times,
      RunStream(options, *data.images, count, *compiled, answers, file.get()));
  const double seconds = SecondsSince(begin);
  if (file != nullptr) {
    RETURN_IF_ERROR(file->Commit());
    unfinished.Write("", "");
  }
  Tell(absl::StrFormat(
      "%d images in %.3f s, %.0f per second; reading %.3f s, computing %.3f s "
      "and writing %.3f s at the same time; compiling before that %.3f s; at "
      "most %d MB of memory",
      count, seconds, count / seconds, times.read_ns * 1e-9,
      times.compute_ns * 1e-9, times.write_ns * 1e-9, compile_seconds,
      CurrentUsage().max_resident_bytes / 1000000));
  for (const std::string& line : answers.Text()) std::puts(line.c_str());
  for (const std::string& line : answers.CloseText()) std::puts(line.c_str());
  RETURN_IF_ERROR(
      TellPlan(options, *compiled, count, image_size, device, workers));
  if (!counted) return absl::OkStatus();
  return JudgeCount(options, weights, count, answers.correct());
}

absl::Status ParseAndClassify(const std::vector<std::string>& command) {
  ASSIGN_OR_RETURN(const ClassifyOptions options,
                   ParseClassifyOptions({command.begin() + 1, command.end()}));
  if (options.help) {
    std::fputs(ClassifyHelp().c_str(), stdout);
    return absl::OkStatus();
  }
  return Classify(command.front(), options);
}

}  // namespace

int RunClassify(int argc, char** argv) {
  return RunMain("classify", [&] {
    return ParseAndClassify({argv, argv + argc});
  });
}

}  // namespace convlab
