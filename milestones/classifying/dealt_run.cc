#include "milestones/classifying/dealt_run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files/files.h"
#include "common/record/build_info.h"
#include "common/record/host.h"
#include "common/record/recorded_command.h"
#include "common/record/usage.h"
#include "common/status/status.h"
#include "kernels/compiled/plan.h"
#include "kernels/cuda/device.h"
#include "milestones/classifying/answers.h"
#include "milestones/classifying/deal.h"
#include "milestones/classifying/plan_report.h"
#include "milestones/classifying/rank_server.h"
#include "milestones/classifying/stream.h"
#include "milestones/progress.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

absl::Status TellPlan(const ClassifyOptions& options, int image_size,
                      const ClassifyDevice& device,
                      const WorkerResult& result) {
  if (!options.plan && options.plan_svg.empty()) return absl::OkStatus();
  const Network& network = *options.model.network;
  ASSIGN_OR_RETURN(const Rates rates, MeasureRates(device));
  const PlanReport report =
      ReportPlan(network, MakePlan(network), result.share.images, image_size,
                 result.stage_ns, result.stage_kernels, device.text, rates,
                 result.stage_images);
  if (options.plan) std::fputs(PlanTable(report).c_str(), stdout);
  if (options.plan_svg.empty()) return absl::OkStatus();
  return WriteFileAtomically(options.plan_svg, PlanPicture(report));
}

DealOptions DealFor(const DealtRun& run, int64_t done) {
  DealOptions deal;
  deal.first = done;
  deal.count = run.count;
  deal.block = run.block;
  // What a worker reads ahead, and as much again for one that is late.
  deal.window = 2 * PiecesOf(run.readers()) *
                static_cast<int64_t>(run.devices.size()) * run.ranks.size();
  // Alone, each device may be lost by itself.
  deal.ranks = run.ranks.size() > 1 ? run.ranks.size()
                                    : static_cast<int>(run.devices.size());
  deal.tolerate = run.options.tolerate;
  deal.tell = Tell;
  return deal;
}

// How the images of a rank came from rank 0; "" if they did not.
std::string WayOfPieces(const ClassifyRecord& record,
                        const ClassifyShare& share) {
  if (share.rank == 0 || record.reading != "rank 0") return "";
  if (share.shared_pieces == 0) return " by messages";
  if (share.shared_pieces >= share.pieces) return " by shared memory";
  return absl::StrCat(" (", share.shared_pieces, " by shared memory)");
}

// Where a host has more ranks than GPUs: its workers do not add up.
void TellSharedGpus(const ClassifyRecord& record) {
  std::map<std::pair<std::string, std::string>, int> workers;
  for (const ClassifyShare& share : record.shares) {
    if (share.pci_bus_id.empty()) continue;
    ++workers[{share.host, share.pci_bus_id}];
  }
  for (const auto& [gpu, count] : workers) {
    if (count == 1) continue;
    Tell(absl::StrCat(count, " workers share the GPU ", gpu.second, " of ",
                      gpu.first, ": there are fewer GPUs than were asked for"));
  }
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
    Tell(absl::StrFormat(
        "%s%s: %d images in %d pieces%s, computing %.3f s%s",
        record.ranks == 1
            ? ""
            : absl::StrCat("rank ", share.rank, " on ", share.host, ", "),
        share.device, share.images, share.pieces, WayOfPieces(record, share),
        share.compute_ns * 1e-9, share.lost.empty() ? "" : ", then lost"));
  }
  Tell(absl::StrFormat(
      "%d images in %.3f s, %.0f per second; reading %.3f s, computing %.3f s "
      "and writing %.3f s at the same time; compiling before that %.3f s; at "
      "most %d MB of memory",
      images, seconds, images / seconds, read_ns * 1e-9, compute_ns * 1e-9,
      record.write_ns * 1e-9, compile_ns * 1e-9,
      record.max_resident_bytes / 1000000));
}

absl::Status WriteRecord(const DealtRun& run, ClassifyRecord& record) {
  if (run.options.record.empty()) return absl::OkStatus();
  record.command = RecordedCommand(run.command);
  record.started = run.started;
  record.git_revision = kGitRevision;
  record.build_mode = kBuildMode;
  record.host = ReadHostFacts();
  record.network = run.network().name;
  return WriteFileAtomically(run.options.record, ToJson(record));
}

// Asked before the run: a GPU that falls out answers no more.
absl::Status FindLinks(const DealtRun& run, ClassifyRecord& record) {
  if (!run.gpu()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto links, cuda::PeerLinks());
  for (const cuda::PeerLink& link : links) {
    record.links.push_back(
        {0, link.from, link.to, link.access, link.atomics, link.rank});
  }
  return absl::OkStatus();
}

// Deals the images to the devices and writes the answers.
absl::Status Stream(const DealtRun& run, Output& output, ClassifyRecord& record,
                    std::vector<WorkerResult>& results, bool& lost_any) {
  const ClassifyOptions& options = run.options;
  record.images = run.count;
  record.block = run.block;
  record.resumed = output.done();
  record.ranks = run.ranks.size();
  record.reading = options.read_each ? "each" : "rank 0";
  record.readers = run.readers();
  if (record.resumed > 0) {
    Tell(absl::StrCat("going on behind image ", record.resumed, " of ",
                      run.count));
  }
  Deal deal(*run.input.images, DealFor(run, output.done()));
  // The ranks of DealFor.
  std::vector<int> numbers;
  for (const ClassifyDevice& device : run.devices) {
    const std::string name = run.ranks.Name(0);
    numbers.push_back(deal.AddWorker(
        absl::StrCat(name, name.empty() ? "" : ", ", device.text),
        name.empty() ? static_cast<int>(numbers.size()) : 0));
  }
  const WorkerJob job = {
      run.network(),
      run.weights,
      run.input.images->width(),
      {run.network().Classes(), options.logits, run.readers()},
      options.plan || !options.plan_svg.empty(),
      run.block * run.image_bytes(),
      run.gpu_piece,
      {}};
  RankServer others(run.ranks, deal,
                    {run.network().Classes(), options.logits, run.image_bytes(),
                     options.read_each, run.readers(), &run.slots});
  LocalWorkers workers(run.devices, job, deal, numbers);
  // Where this thread cannot go on, the workers are not to wait for it.
  const absl::Cleanup end([&] {
    deal.Fail(absl::InternalError("the images are no longer dealt"));
  });
  workers.WaitReady();
  others.WaitReady();
  const Clock::time_point begin = Clock::now();
  others.Begin();
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
  for (WorkerResult& result : results) {
    if (run.ranks.size() > 1) result.share.host = run.ranks.place(0).host;
    record.shares.push_back(result.share);
  }
  RETURN_IF_ERROR(write_ns.status());
  record.write_ns = *write_ns;
  RETURN_IF_ERROR(output.Finish());
  for (ClassifyShare& share : others.End()) {
    record.shares.push_back(std::move(share));
  }
  lost_any = others.lost_any();
  return absl::OkStatus();
}

}  // namespace

int DealtRun::readers() const {
  // An H200 computes up to 40 million images a second, 31 GB/s, and six threads
  // of its host read 23 GB/s from the page cache; eight read no more.
  constexpr int kFewest = 2, kMost = 6;
  // One has the GPU compute, and one finds the answers.
  constexpr int kOthers = 2;
  // A file that is read forward has one reader at a time.
  if (!gpu() || !input.images->random_access()) return 1;
  if (options.readers > 0) return options.readers;
  return std::clamp(devices[0].threads - kOthers, kFewest, kMost);
}

void Tell(const std::string& text) {
  absl::FPrintF(stderr, "classify: %s\n", OneLine(text));
}

absl::Status ClassifyDealt(const DealtRun& run, Output& output,
                           bool& lost_any) {
  ClassifyRecord record;
  std::vector<WorkerResult> results;
  if (!run.options.record.empty()) RETURN_IF_ERROR(FindLinks(run, record));
  RETURN_IF_ERROR(Stream(run, output, record, results, lost_any));
  record.max_resident_bytes = CurrentUsage().max_resident_bytes;
  const Answers& answers = output.answers();
  if (answers.has_labels()) record.correct = answers.correct();
  TellShares(record);
  TellSharedGpus(record);
  for (const std::string& line : answers.Text()) std::puts(line.c_str());
  for (const std::string& line : answers.CloseText()) std::puts(line.c_str());
  // First, since the plan's ceilings may fail.
  RETURN_IF_ERROR(WriteRecord(run, record));
  // Of the first worker that has times; the others do the same.
  size_t timed = 0;
  while (timed < results.size() && results[timed].stage_ns.empty()) ++timed;
  if (timed < results.size()) {
    RETURN_IF_ERROR(TellPlan(run.options, run.input.images->width(),
                             run.devices[timed], results[timed]));
  } else if (run.options.plan || !run.options.plan_svg.empty()) {
    // All images are answered, and what went wrong then is not told yet.
    for (const WorkerResult& result : results) RETURN_IF_ERROR(result.status);
  }
  return absl::OkStatus();
}

}  // namespace convlab
