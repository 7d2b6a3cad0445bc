// Measures again what participants handed in, on this machine and in one go,
// and ranks it: bazel run //tools:rerun -- DIR
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/files/files.h"
#include "common/flags/flags.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "gflags/gflags.h"
#include "tools/cpp/runfiles/runfiles.h"
#include "tools/rerun/handed_in.h"

DEFINE_string(
    network, "",
    "network to run; if not given, that of the participants' records");
DEFINE_int64(size, 10000, "images of each run");
DEFINE_string(device, "gpu", "gpu or cpu");
DEFINE_int32(rounds, 3, "runs of each participant");
DEFINE_string(out, "rerun",
              "folder to write to: a folder of records for each participant");
DEFINE_string(html, "", "also write the ranking as a page to this file");
DEFINE_string(flags, "",
              "more flags of the milestones, with blanks between them");
DEFINE_string(convlab, "",
              "the program of all milestones; by default the one that lies "
              "beside this program");
DEFINE_string(ranking, "", "the program that ranks; likewise");

namespace convlab {
namespace {

namespace fs = std::filesystem;

std::string HelpText() {
  return absl::StrCat(
      "Usage: bazel run //tools:rerun -- DIR [--flags]\n\n",
      WrapText("Runs the kernel in each participant's folder below DIR, with "
               "milestone m3 on the GPU and m2 on the CPU, and ranks the "
               "participants by these runs. All take turns, so that a "
               "disturbance meets everybody, and each round begins with "
               "another. The samples of a participant's runs are taken "
               "together.",
               0, 0),
      "\n\n", DescribeFlags(__FILE__),
      "\nExit status: 0 done, 1 a run or the ranking failed, 2 bad usage.\n");
}

// A program that Bazel put beside this one, or that lies in the same folder, as
// in the bundle.
std::string FindProgram(const std::string& given, const char* self,
                        const std::string& runfile) {
  using bazel::tools::cpp::runfiles::Runfiles;
  if (!given.empty()) return UserPath(given);
  std::error_code error;
  const fs::path beside = fs::read_symlink("/proc/self/exe", error)
                              .replace_filename(fs::path(runfile).filename());
  if (fs::is_regular_file(beside, error)) return beside.string();
  std::string ignored;
  const std::unique_ptr<Runfiles> runfiles(Runfiles::Create(self, &ignored));
  if (runfiles == nullptr) return beside.string();
  return runfiles->Rlocation("convlab/" + runfile);
}

// Runs a program on this one's output and waits for it. Returns Internal if its
// exit status is not 0, and NotFound if it cannot be started.
absl::Status RunAndWait(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  pid_t process;
  const int error =
      posix_spawnp(&process, argv[0], nullptr, nullptr, argv.data(), environ);
  if (error != 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot run ", arguments[0], ": ", strerror(error)));
  }
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InternalError(
      WIFEXITED(status) ? absl::StrCat("exit status ", WEXITSTATUS(status))
                        : absl::StrCat("ended by signal ", WTERMSIG(status)));
}

// The network that is asked for, or the only one of the records; fa19 if there
// is no record.
absl::StatusOr<std::string> ChooseNetwork(
    const std::vector<HandedIn>& participants) {
  if (!FLAGS_network.empty()) return FLAGS_network;
  std::set<std::string> networks;
  for (const HandedIn& participant : participants) {
    if (!participant.network.empty()) networks.insert(participant.network);
  }
  if (networks.empty()) return "fa19";
  if (networks.size() == 1) return *networks.begin();
  return absl::InvalidArgumentError(
      absl::StrCat("the records are of several networks, ",
                   absl::StrJoin(networks, ", "), ": choose one by --network"));
}

absl::Status CheckFlags(const ParsedFlags& flags) {
  if (flags.positional.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.positional.size(),
                     " folders are given, expected one with a folder for each "
                     "participant"));
  }
  if (FLAGS_device != "gpu" && FLAGS_device != "cpu") {
    return absl::InvalidArgumentError(
        absl::StrCat("--device is '", FLAGS_device, "', expected gpu or cpu"));
  }
  if (FLAGS_rounds < 1 || FLAGS_rounds > 1000) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rounds is ", FLAGS_rounds, ", expected 1 to 1000"));
  }
  return absl::OkStatus();
}

// One run. Its lines go to the standard error: the standard output is the
// ranking's.
absl::Status RunKernel(const HandedIn& participant, const std::string& program,
                       const std::string& network, const std::string& record) {
  std::vector<std::string> command = {
      program,    FLAGS_device == "gpu" ? "m3" : "m2",
      network,    absl::StrCat(FLAGS_size),
      "--device", FLAGS_device,
      "--kernel", participant.kernel,
      "--record", record};
  for (absl::string_view flag :
       absl::StrSplit(FLAGS_flags, ' ', absl::SkipEmpty())) {
    command.emplace_back(flag);
  }
  const int output = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  absl::Status status = RunAndWait(command);
  dup2(output, STDOUT_FILENO);
  close(output);
  return status;
}

// Runs all participants in turns; returns how many runs failed.
int RunRounds(const std::vector<HandedIn>& participants,
              const std::string& program, const std::string& network,
              const std::string& out) {
  int failed = 0;
  const size_t count = participants.size();
  for (int round = 0; round < FLAGS_rounds; ++round) {
    for (size_t turn = 0; turn < count; ++turn) {
      const HandedIn& participant = participants[(turn + round) % count];
      if (!participant.failure.empty()) continue;
      absl::FPrintF(stderr, "rerun: round %d of %d, %s\n", round + 1,
                    FLAGS_rounds, OneLine(participant.name));
      const absl::Status status =
          RunKernel(participant, program, network,
                    absl::StrCat(out, "/", participant.name, "/round-",
                                 round + 1, ".json"));
      if (status.ok()) continue;
      ++failed;
      absl::FPrintF(stderr, "%s\n",
                    ErrorLine("rerun", absl::StrCat(participant.name, ": ",
                                                    status.message())));
    }
  }
  return failed;
}

absl::Status Run(const std::vector<std::string>& args, const char* self) {
  ASSIGN_OR_RETURN(const ParsedFlags flags, ParseFlags(args, __FILE__));
  if (flags.help) {
    std::fputs(HelpText().c_str(), stdout);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckFlags(flags));
  ASSIGN_OR_RETURN(const std::vector<HandedIn> participants,
                   FindHandedIn(UserPath(flags.positional[0]), FLAGS_device));
  ASSIGN_OR_RETURN(const std::string network, ChooseNetwork(participants));
  const std::string out = UserPath(FLAGS_out);
  std::vector<std::string> ranking = {
      FindProgram(FLAGS_ranking, self, "reports/ranking"),
      "--network=" + network, absl::StrCat("--size=", FLAGS_size),
      "--device=" + FLAGS_device, "--pool"};
  if (!FLAGS_html.empty()) ranking.push_back("--html=" + FLAGS_html);
  for (const HandedIn& participant : participants) {
    const std::string folder = absl::StrCat(out, "/", participant.name);
    std::error_code error;
    // Records of an earlier rerun are not of this go.
    if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
      return absl::InvalidArgumentError(absl::StrCat(
          folder, " is not empty: --out names a folder for this rerun"));
    }
    fs::create_directories(folder, error);
    if (error) return FileError("make the folder", folder, error.value());
    ranking.push_back(folder);
    if (participant.failure.empty()) continue;
    absl::FPrintF(stderr, "%s\n",
                  ErrorLine("rerun", absl::StrCat(participant.name, ": ",
                                                  participant.failure)));
  }
  const int failed = RunRounds(
      participants, FindProgram(FLAGS_convlab, self, "milestones/convlab"),
      network, out);
  RETURN_IF_ERROR(Annotate(RunAndWait(ranking), "the ranking"));
  if (failed == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(failed, " runs failed"));
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  return convlab::RunMain("rerun", [&] {
    return convlab::Run({argv + 1, argv + argc}, argv[0]);
  });
}
