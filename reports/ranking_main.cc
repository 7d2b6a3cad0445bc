// Ranks participants' best correct runs: bazel run //reports:ranking -- DIR...
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/files/files.h"
#include "common/flags/flags.h"
#include "common/network/network.h"
#include "common/record/seal.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "common/weights/weights.h"
#include "gflags/gflags.h"
#include "reports/comparison/ranking.h"
#include "reports/document/writers.h"
#include "reports/program.h"
#include "tools/cpp/runfiles/runfiles.h"

DEFINE_string(network, "fa19", "network whose runs are ranked");
DEFINE_int64(size, 10000, "images of the runs that are ranked");
DEFINE_int64(correct, -1,
             "expected number of correct answers; if not given, that of the "
             "weight file of each run");
DEFINE_string(device, "gpu", "gpu or cpu, on which the runs were made");
DEFINE_bool(any_device, false,
            "rank runs on different GPUs, or CPUs, together");
DEFINE_string(html, "",
              "also write a page with each participant's history to this file");
DEFINE_string(seal_key, "",
              "rank only records that are sealed with the key in this file");
DEFINE_bool(pool, false,
            "take the samples of all runs of a kernel together, instead of its "
            "best run");
DEFINE_string(rerun, "",
              "names the command that measures again what the participants in "
              "this folder handed in");

namespace convlab {
namespace {

std::string HelpText() {
  return absl::StrCat(
      "Usage: bazel run //reports:ranking -- DIR... [--flags]\n\n",
      WrapText(
          absl::StrCat(
              "Ranks each participant's best correct run by the sum of its op "
              "times, as a table in Markdown. Each DIR is one "
              "participant's folder of run records and gives the name. A run "
              "that was not verified, was edited or copied, is wrong, or has "
              "times that cannot be is not ranked, and the reason is told. ",
              kTieRule, " Points: ", kPointsRule),
          0, 0),
      "\n\n", DescribeFlags(__FILE__),
      "\nExit status: 0 done, 1 failed, 2 bad usage or bad records.\n");
}

// The numbers of correct answers of the network's own weights, which lie beside
// the program.
absl::StatusOr<std::map<int64_t, int64_t>> OwnCounts(const char* program,
                                                     const Network& network) {
  using bazel::tools::cpp::runfiles::Runfiles;
  std::map<int64_t, int64_t> counts;
  std::string error;
  const std::unique_ptr<Runfiles> runfiles(Runfiles::Create(program, &error));
  if (runfiles == nullptr) return counts;
  ASSIGN_OR_RETURN(const NetworkWeights weights,
                   LoadWeights(runfiles->Rlocation(absl::StrCat(
                                   "convlab/common/weights/models/",
                                   network.name, ".safetensors")),
                               network));
  for (const auto& [name, value] : weights.metadata) {
    absl::string_view size = name;
    int64_t images, correct;
    if (absl::ConsumePrefix(&size, "correct_") &&
        absl::SimpleAtoi(size, &images) && absl::SimpleAtoi(value, &correct)) {
      counts[images] = correct;
    }
  }
  return counts;
}

absl::StatusOr<RankingOptions> Options(const ParsedFlags& flags,
                                       const char* program) {
  RankingOptions options;
  ASSIGN_OR_RETURN(const Network* network, FindNetwork(FLAGS_network));
  options.network = network->name;
  options.size = FLAGS_size;
  if (flags.given.count("correct") > 0) {
    if (FLAGS_correct < 0 || FLAGS_correct > FLAGS_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--correct is ", FLAGS_correct, ", expected 0 to ", FLAGS_size));
    }
    options.correct[FLAGS_size] = FLAGS_correct;
  } else {
    ASSIGN_OR_RETURN(options.correct, OwnCounts(program, *network));
  }
  if (FLAGS_device != "gpu" && FLAGS_device != "cpu") {
    return absl::InvalidArgumentError(
        absl::StrCat("--device is '", FLAGS_device, "', expected gpu or cpu"));
  }
  options.device = FLAGS_device;
  options.any_device = FLAGS_any_device;
  options.pool = FLAGS_pool;
  return options;
}

absl::Status Run(const std::vector<std::string>& args, const char* program) {
  ASSIGN_OR_RETURN(const ParsedFlags flags, ParseFlags(args, __FILE__));
  if (flags.help) {
    std::fputs(HelpText().c_str(), stdout);
    return absl::OkStatus();
  }
  if (!FLAGS_rerun.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "this program only reads records; this one measures again and ranks: "
        "bazel run //tools:rerun -- ",
        FLAGS_rerun));
  }
  if (flags.positional.empty()) {
    return absl::InvalidArgumentError("no folder is given; --help says more");
  }
  ASSIGN_OR_RETURN(RankingOptions options, Options(flags, program));
  ASSIGN_OR_RETURN(const std::string key, ReadSealKey(FLAGS_seal_key));
  options.keyed = !key.empty();
  const std::string page = FLAGS_html.empty() ? "" : UserPath(FLAGS_html);
  if (!page.empty()) RETURN_IF_ERROR(CheckWritable(page));
  std::vector<Participant> participants;
  for (const std::string& folder : flags.positional) {
    ASSIGN_OR_RETURN(Participant participant, ReadParticipant(folder, key));
    participants.push_back(std::move(participant));
  }
  ASSIGN_OR_RETURN(const Ranking ranking,
                   RankParticipants(participants, options));
  if (ranking.sections.empty() &&
      absl::c_all_of(ranking.histories, [](const History& history) {
        return history.entries.empty();
      })) {
    const RefusedRun& first = ranking.refusals[0];
    return absl::InvalidArgumentError(
        absl::StrCat("nobody is to be ranked: ", first.name, ": ",
                     first.run.empty() ? "" : first.run + ": ", first.reason));
  }
  if (!page.empty()) {
    const std::string folder =
        std::filesystem::absolute(page).parent_path().string();
    RETURN_IF_ERROR(
        WriteFileAtomically(page, RankingPage(ranking, options, folder)));
  }
  std::fputs(
      WriteBlocks(DescribeRanking(ranking, options), TerminalWidth()).c_str(),
      stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  return convlab::RunMain("ranking", [&] {
    return convlab::Run({argv + 1, argv + argc}, argv[0]);
  });
}
