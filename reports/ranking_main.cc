// Ranks participants' best correct runs: bazel run //reports:ranking -- DIR...
#include <cstdio>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/flags/flags.h"
#include "common/status/status.h"
#include "gflags/gflags.h"
#include "reports/comparison/ranking.h"
#include "reports/document/writers.h"

DEFINE_string(network, "fa19", "network whose runs are ranked");
DEFINE_int64(size, 10000, "images of the runs that are ranked");
DEFINE_int64(correct, -1,
             "expected number of correct answers; if not given, that of the "
             "weight file of each run");
DEFINE_string(device, "gpu", "gpu or cpu, on which the runs were made");
DEFINE_bool(any_device, false,
            "rank runs on different GPUs, or CPUs, together");

namespace convlab {
namespace {

std::string HelpText() {
  return absl::StrCat(
      "Usage: bazel run //reports:ranking -- DIR... [--flags]\n\n",
      WrapText(
          absl::StrCat(
              "Ranks each participant's best correct run by the sum of its op "
              "times, as a table in Markdown. Each DIR is one "
              "participant's folder of run records and gives the name. "
              "Points: ",
              kPointsRule),
          0, 0),
      "\n\n", DescribeFlags(__FILE__),
      "\nExit status: 0 done, 1 failed, 2 bad usage or bad records.\n");
}

absl::Status Run(const std::vector<std::string>& args) {
  ASSIGN_OR_RETURN(const ParsedFlags flags, ParseFlags(args, __FILE__));
  if (flags.help) {
    std::fputs(HelpText().c_str(), stdout);
    return absl::OkStatus();
  }
  if (flags.positional.empty()) {
    return absl::InvalidArgumentError("no folder is given; --help says more");
  }
  RankingOptions options;
  options.network = FLAGS_network;
  options.size = FLAGS_size;
  if (flags.given.count("correct") > 0) {
    if (FLAGS_correct < 0 || FLAGS_correct > FLAGS_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--correct is ", FLAGS_correct, ", expected 0 to ", FLAGS_size));
    }
    options.correct = FLAGS_correct;
  }
  if (FLAGS_device != "gpu" && FLAGS_device != "cpu") {
    return absl::InvalidArgumentError(
        absl::StrCat("--device is '", FLAGS_device, "', expected gpu or cpu"));
  }
  options.device = FLAGS_device;
  options.any_device = FLAGS_any_device;
  std::vector<Participant> participants;
  for (const std::string& folder : flags.positional) {
    ASSIGN_OR_RETURN(Participant participant, ReadParticipant(folder));
    participants.push_back(std::move(participant));
  }
  ASSIGN_OR_RETURN(const Ranking ranking,
                   RankParticipants(participants, options));
  if (absl::c_all_of(ranking.ranks,
                     [](const Rank& rank) { return rank.run.empty(); })) {
    return absl::InvalidArgumentError(
        absl::StrCat("nobody is to be ranked: ", ranking.ranks[0].name, " has ",
                     ranking.ranks[0].reason));
  }
  std::fputs(WriteBlocks(DescribeRanking(ranking, options)).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  const absl::Status status = convlab::Run({argv + 1, argv + argc});
  if (!status.ok()) {
    absl::FPrintF(stderr, "ranking: %s\n", convlab::OneLine(status.message()));
  }
  return convlab::ExitStatus(status);
}
