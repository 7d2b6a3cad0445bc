#include "reports/cluster_model.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files/files.h"
#include "common/status/status.h"
#include "reports/deliverables/charts.h"

namespace convlab {
namespace {

// Threads that read for a GPU, of records that do not tell, and now.
constexpr int kOldReaders = 2, kReaders = 4;
constexpr int64_t kImageBytes = 784;  // 28 x 28
constexpr double kManyImages = 1e12;
constexpr double kHour = 3600;

// Of a piece, on rank 0, beside its bytes: taking, giving, and two messages.
// Measured on a CPU (docs/cluster.md).
constexpr double kDealNs = 6000;

int64_t GpusOf(const ClassifyRecord& run) {
  return static_cast<int64_t>(run.shares.size());
}

double RateOf(const ClassifyRecord& run) {
  return static_cast<double>(run.images - run.resumed) / run.run_ns * 1e9;
}

std::string Millions(double rate) {
  return absl::StrFormat("%.1f", rate * 1e-6);
}

std::string Duration(double seconds) {
  return seconds < 120     ? absl::StrFormat("%.0f s", seconds)
         : seconds < kHour ? absl::StrFormat("%.0f min", seconds / 60)
                           : absl::StrFormat("%.1f h", seconds / kHour);
}

}  // namespace

ClusterParts PartsOf(const ClassifyRecord& record, double deal_ns) {
  double images = 0, read_ns = 0, compute_ns = 0;
  for (const ClassifyShare& share : record.shares) {
    images += static_cast<double>(share.images);
    read_ns += static_cast<double>(share.read_ns);
    compute_ns += static_cast<double>(share.compute_ns);
  }
  const auto per_second = [&](double ns) { return images / ns * 1e9; };
  return {per_second(read_ns), per_second(compute_ns),
          per_second(static_cast<double>(record.write_ns)),
          static_cast<double>(record.block) / deal_ns * 1e9};
}

double ClusterRate(const ClusterParts& parts, ClusterSetup setup, int64_t gpus,
                   int readers) {
  const auto count = static_cast<double>(gpus);
  const double compute = count * parts.compute;
  const double read = readers * parts.reader;  // for one GPU
  const double answers = std::min(parts.write, parts.deal);
  switch (setup) {
    case ClusterSetup::kComputeAlone:
      return compute;
    case ClusterSetup::kRankZeroReads:
      // Its own threads for its GPU, and as many for all others.
      return std::min({compute, std::min(count, 2.0) * read, answers});
    case ClusterSetup::kEachReads:
      return std::min({compute, count * read, answers});
    case ClusterSetup::kRunForEachHost:
      break;
  }
  const int64_t whole = gpus / kHostGpus, rest = gpus % kHostGpus;
  const auto run = [&](int64_t of) {
    return of == 0 ? 0
                   : ClusterRate(parts, ClusterSetup::kEachReads, of, readers);
  };
  return static_cast<double>(whole) * run(kHostGpus) + run(rest);
}

absl::StatusOr<std::vector<ClassifyRecord>> ReadClusterRuns(
    const std::string& folder) {
  std::vector<ClassifyRecord> runs;
  for (;;) {
    const std::string path =
        absl::StrCat(folder, "/classify-", runs.size() + 1, ".json");
    const absl::StatusOr<std::string> text = ReadFile(path);
    if (absl::IsNotFound(text.status())) return runs;
    RETURN_IF_ERROR(text.status());
    absl::StatusOr<ClassifyRecord> run = ParseClassifyRecord(*text);
    if (!run.ok()) return Annotate(run.status(), path);
    if (run->shares.empty() || run->run_ns <= 0 || run->write_ns <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": the record lacks shares or times"));
    }
    runs.push_back(*std::move(run));
  }
}

std::string ClusterTables(const std::vector<ClassifyRecord>& runs) {
  std::string text = absl::StrCat(
      "| GPUs | images | seconds | million images per second | times one GPU | "
      "a thread reads, GB/s | a GPU computes, million images per second | rank "
      "0 writes, ns an image | model, million images per second |\n"
      "|---|---|---|---|---|---|---|---|---|\n");
  for (const ClassifyRecord& run : runs) {
    const ClusterParts parts = PartsOf(run, kDealNs);
    absl::StrAppendFormat(
        &text, "| %d | %d | %.2f | %s | %.2f | %.1f | %s | %.0f | %s |\n",
        GpusOf(run), run.images, run.run_ns * 1e-9, Millions(RateOf(run)),
        RateOf(run) / RateOf(runs[0]), parts.reader * kImageBytes * 1e-9,
        Millions(parts.compute), 1e9 / parts.write,
        Millions(ClusterRate(PartsOf(runs[0], kDealNs),
                             ClusterSetup::kEachReads, GpusOf(run),
                             run.readers > 0 ? run.readers : kOldReaders)));
  }
  const ClusterParts parts = PartsOf(runs.back(), kDealNs);
  absl::StrAppend(
      &text,
      "\nThe model takes its parts from the run on one GPU here. From those of "
      "the last run, and with ",
      kReaders, " threads\nthat read for a GPU, 10^12 images take\n\n",
      "| GPUs | rank 0 reads | each rank reads | an array of runs on ",
      kHostGpus,
      " GPUs | the files must give, TB/s |\n|---|---|---|---|---|\n");
  for (const int64_t gpus : {1, 2, 8, 10, 100, 1000, 10000}) {
    const auto rate = [&](ClusterSetup setup) {
      return ClusterRate(parts, setup, gpus, kReaders);
    };
    const double runs_rate = rate(ClusterSetup::kRunForEachHost);
    absl::StrAppendFormat(
        &text, "| %d | %s | %s | %s | %.2f |\n", gpus,
        Duration(kManyImages / rate(ClusterSetup::kRankZeroReads)),
        Duration(kManyImages / rate(ClusterSetup::kEachReads)),
        Duration(kManyImages / runs_rate), runs_rate * kImageBytes * 1e-12);
  }
  return text;
}

Chart ClusterChart(const std::vector<ClassifyRecord>& runs) {
  const ClusterParts parts = PartsOf(runs.back(), kDealNs);
  using drawing::Ink;
  using drawing::Shape;
  drawing::LinePlot plot;
  plot.title = absl::StrCat("classify ", runs[0].network, " on many GPUs");
  plot.description = absl::StrCat(
      plot.title,
      ": million images per second against the number of GPUs, as the model "
      "says and as measured");
  plot.x_axis = "GPUs (logarithmic)";
  plot.y_axis = "million images per second (logarithmic)";
  const auto add = [&](const char* name, Ink ink, Shape shape,
                       ClusterSetup setup) {
    drawing::LinePlot::Curve& curve = plot.curves.emplace_back();
    curve = {name, ink, shape, /*is_dashed=*/true, {}};
    for (const int64_t gpus :
         {1, 2, 4, 8, 16, 32, 100, 320, 1000, 3200, 10000}) {
      curve.points.emplace_back(
          static_cast<double>(gpus),
          ClusterRate(parts, setup, gpus, kReaders) * 1e-6);
    }
  };
  add("an array of runs", Ink::kGreen, Shape::kTriangle,
      ClusterSetup::kRunForEachHost);
  add("each rank reads", Ink::kOrange, Shape::kSquare,
      ClusterSetup::kEachReads);
  add("rank 0 reads", Ink::kPurple, Shape::kDiamond,
      ClusterSetup::kRankZeroReads);
  drawing::LinePlot::Curve& measured = plot.curves.emplace_back();
  measured = {"measured", Ink::kBlue, Shape::kCircle, false, {}};
  for (const ClassifyRecord& run : runs) {
    measured.points.emplace_back(static_cast<double>(GpusOf(run)),
                                 RateOf(run) * 1e-6);
  }
  return MakeChart("cluster", plot);
}

}  // namespace convlab
