// Judges the attacks, and says which of them the judge did not see through and
// which honest kernels it accused.
#include "common/status/main.h"

#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files/files.h"
#include "common/flags/flags.h"
#include "common/parallel/parallel.h"
#include "common/status/status.h"
#include "gflags/gflags.h"
#include "kernels/cuda/device.h"
#include "kernels/judge/process/process.h"
#include "tools/judge/attacks/attacks.h"

DEFINE_string(device, "auto",
              "cpu or gpu: whose attacks; auto: the GPU's too if there is one");
DEFINE_bool(list, false,
            "print the attacks with the verdicts that they must get, as a "
            "table in Markdown, and end");
DEFINE_bool(verdicts, false, "print every verdict in full");

namespace convlab {
namespace {

constexpr char kUsage[] =
    "Usage: bazel run //tools/judge:attacks -- [NAME...] [--flags]\n\n"
    "Compiles and judges kernels that cheat, fail or only look as if they did\n"
    "(all, or those named, as in cpu/late_thread), and prints the verdict "
    "that\n"
    "each must get and the one that it got. Exit status: 0 if all are equal, "
    "1\n"
    "if not, 2 wrong usage, 3 no GPU.\n\n";

void PrintMarkdown(const std::vector<Attack>& attacks) {
  absl::PrintF("| kernel | what it does | verdict | what the verdict says |\n");
  absl::PrintF("|---|---|---|---|\n");
  for (const Attack& attack : attacks) {
    const AttackDescription description = Describe(attack);
    absl::PrintF("| `%s` | %s %s | %s | %s |\n", NameOf(attack),
                 description.trick, description.caught, Name(attack.expected),
                 attack.phrase);
  }
}

// The attacks with these names, or all; of the devices that are to be used.
absl::StatusOr<std::vector<Attack>> Choose(
    const std::vector<std::string>& names) {
  std::set<std::string> unknown(names.begin(), names.end());
  std::vector<Attack> chosen;
  for (const Attack& attack : Attacks()) {
    const std::string name(NameOf(attack));
    unknown.erase(name);
    bool named = names.empty();
    for (const std::string& wanted : names) named |= wanted == name;
    const bool on_device = FLAGS_device == "auto" ||
                           FLAGS_device == (UsesGpu(attack) ? "gpu" : "cpu");
    if (named && on_device) chosen.push_back(attack);
  }
  if (!unknown.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no attack '", *unknown.begin(), "'; --list names them all"));
  }
  return chosen;
}

// Whether the verdict is the expected one.
absl::StatusOr<bool> Run(const Attack& attack, const TemporaryFolder& folder,
                         int compute_capability, Workers& workers) {
  const auto start = std::chrono::steady_clock::now();
  absl::PrintF("%-36s %-10s ", NameOf(attack), Name(attack.expected));
  std::fflush(stdout);
  ASSIGN_OR_RETURN(const CompiledKernel kernel,
                   Compile(attack, folder, compute_capability));
  ASSIGN_OR_RETURN(const AttackResult result, Try(attack, kernel, workers));
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  absl::PrintF("%-10s %5.1f s  %s\n", Name(result.verdict.outcome),
               seconds.count(), result.as_expected ? "as expected" : "DIFFERS");
  if (!result.as_expected && result.verdict.outcome == attack.expected) {
    absl::PrintF("  expected a verdict with '%s'\n", attack.phrase);
  }
  if (FLAGS_verdicts || !result.as_expected) {
    absl::PrintF("%s\n", ToString(result.verdict));
  }
  return result.as_expected;
}

absl::StatusOr<bool> RunAll(const std::vector<std::string>& names) {
  if (FLAGS_device != "auto" && FLAGS_device != "cpu" &&
      FLAGS_device != "gpu") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--device is '", FLAGS_device, "'; expected auto, cpu or gpu"));
  }
  const absl::StatusOr<cuda::DeviceFacts> device = cuda::FindDevice();
  if (!device.ok() && FLAGS_device == "gpu" && !FLAGS_list) {
    return device.status();
  }
  ASSIGN_OR_RETURN(const std::vector<Attack> attacks, Choose(names));
  if (FLAGS_list) {
    PrintMarkdown(attacks);
    return true;
  }
  ASSIGN_OR_RETURN(const TemporaryFolder folder, WriteAttackFiles());
  Workers workers(Workers::Available());
  absl::PrintF("%-36s %-10s %-10s\n", "kernel", "expected", "found");
  int run = 0;
  int skipped = 0;
  std::vector<std::string> different;
  for (const Attack& attack : attacks) {
    if (UsesGpu(attack) && !device.ok()) {
      ++skipped;
      continue;
    }
    ++run;
    ASSIGN_OR_RETURN(
        const bool as_expected,
        Run(attack, folder, device.ok() ? device->compute_capability : 0,
            workers));
    if (!as_expected) different.emplace_back(NameOf(attack));
  }
  absl::PrintF("%d of %d verdicts as expected", run - different.size(), run);
  if (skipped > 0) absl::PrintF("; %d skipped: no GPU", skipped);
  absl::PrintF("\n");
  return different.empty();
}

// Whether all verdicts are those expected.
absl::StatusOr<bool> ParseAndRun(const std::vector<std::string>& args) {
  ASSIGN_OR_RETURN(const ParsedFlags parsed, ParseFlags(args, __FILE__));
  if (!parsed.help) return RunAll(parsed.positional);
  absl::PrintF("%s%s", kUsage, DescribeFlags(__FILE__));
  return true;
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  convlab::RunAsKernelProcessIfAsked(argc, argv);
  bool as_expected = true;
  const int exit_status = convlab::RunMain("attacks", [&]() -> absl::Status {
    ASSIGN_OR_RETURN(as_expected,
                     convlab::ParseAndRun({argv + 1, argv + argc}));
    return absl::OkStatus();
  });
  return exit_status == 0 && !as_expected ? 1 : exit_status;
}
