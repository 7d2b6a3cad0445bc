// Searches for the data on which a variant is worst by the contract of class
// fp32 (docs/numerics.md).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files/files.h"
#include "common/flags/flags.h"
#include "common/parallel/parallel.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "gflags/gflags.h"
#include "kernels/convolution/checking/finds.h"
#include "kernels/convolution/checking/host_run.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/variants.h"
#include "tools/adversary/search.h"
#include "tools/bench/layers.h"

DEFINE_string(device, "gpu", "gpu or cpu: where the variant computes");
DEFINE_int64(batch, 3, "images of a layer that is given by its name");
DEFINE_double(seconds, 60, "search for so long");
DEFINE_uint64(seed, 1, "another search for each seed");
DEFINE_int32(finds, 3, "write the data of so many finds");
DEFINE_string(out, "",
              "write the worst data to this file, in the format of "
              "kernels/convolution/checking/finds.txt, which the tests replay");
DEFINE_string(replay, "",
              "search nothing: run the variant on the finds of this file");

namespace convlab {
namespace {

constexpr char kUsage[] =
    "usage: adversary VARIANT LAYER [--flags]\n"
    "       adversary VARIANT --replay FILE [--flags]\n\n"
    "Searches at random for the data on which a variant's worst output needs "
    "the\n"
    "largest c of the contract of class fp32, compared with the c that it "
    "allows.\n"
    "LAYER is fa19-L2, say, or sizes B,C,H,W,M,K: small ones are searched "
    "best.\n"
    "Prints the worst data when they change; exit status 1 if they break the\n"
    "contract.\n\n"
    "The data are recipes: a seed and operations,\n\n";

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The score, and what leads to it.
std::string Line(const Problem& problem, const RatedRecipe& attack) {
  return absl::StrFormat("c = %-9.3g of %-5.3g allowed  %s", attack.factor,
                         attack.allowed,
                         ToString(Find{problem, attack.recipe}));
}

Computation ComputeWith(const Variant& variant, const Problem& problem,
                        Workers& workers) {
  return [&variant, problem, &workers](const ConvolutionData& data) {
    Resources resources;
    resources.workers = &workers;
    return RunOnHostTensors(variant, problem, resources, data.x, data.k);
  };
}

absl::Status Broken(const Variant& variant, const RatedRecipe& worst) {
  if (worst.factor <= worst.allowed) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "%s breaks the contract of class fp32: c = %.3g, expected at most %.3g",
      variant.name, worst.factor, worst.allowed));
}

absl::Status WriteFinds(const Variant& variant, const Problem& problem,
                        const std::vector<RatedRecipe>& finds) {
  std::string text;
  for (const RatedRecipe& find : finds) {
    absl::StrAppend(
        &text, ToString(Find{problem, find.recipe}), "  // ", variant.name,
        absl::StrFormat(": c = %.3g of %.3g\n", find.factor, find.allowed));
  }
  return WriteFileAtomically(UserPath(FLAGS_out), text);
}

absl::Status SearchWorst(const Variant& variant, const Problem& problem,
                         Workers& workers) {
  RETURN_IF_ERROR(variant.Check(problem, Resources()));
  Search search(problem, ComputeWith(variant, problem, workers), FLAGS_seed,
                workers);
  const Clock::time_point start = Clock::now();
  double shown = 0;
  while (SecondsSince(start) < FLAGS_seconds) {
    RETURN_IF_ERROR(search.Step());
    const RatedRecipe& worst = search.worst()[0];
    if (worst.score() > 1.01 * shown) {
      shown = worst.score();
      absl::PrintF("%6.0f s %8d tried  %s\n", SecondsSince(start),
                   search.tried(), Line(problem, worst));
      std::fflush(stdout);
    }
  }
  std::vector<RatedRecipe> finds;
  for (const RatedRecipe& attack : search.worst()) {
    if (static_cast<int>(finds.size()) == FLAGS_finds) break;
    ASSIGN_OR_RETURN(RatedRecipe find, search.Simplify(attack));
    const auto same = [&](const RatedRecipe& other) {
      return ToString(other.recipe) == ToString(find.recipe);
    };
    if (std::any_of(finds.begin(), finds.end(), same)) continue;
    absl::PrintF("worst: %s\n", Line(problem, find));
    finds.push_back(std::move(find));
  }
  absl::PrintF("%d tried in %.0f s\n", search.tried(), SecondsSince(start));
  if (!FLAGS_out.empty()) {
    RETURN_IF_ERROR(WriteFinds(variant, problem, finds));
  }
  return Broken(variant, search.worst()[0]);
}

absl::Status Replay(const Variant& variant, Workers& workers) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(UserPath(FLAGS_replay)));
  const auto finds = ParseFinds(text);
  if (!finds.ok()) return Annotate(finds.status(), FLAGS_replay);
  absl::Status outcome;
  for (const Find& find : *finds) {
    Search search(find.problem, ComputeWith(variant, find.problem, workers),
                  FLAGS_seed, workers);
    ASSIGN_OR_RETURN(const RatedRecipe attack, search.Try(find.recipe));
    absl::PrintF("%s\n", Line(find.problem, attack));
    outcome.Update(Broken(variant, attack));
  }
  return outcome;
}

absl::Status CheckNumbers() {
  // Not "<= 0": NaN is no time either.
  if (!(FLAGS_seconds > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--seconds is ", FLAGS_seconds, ", expected more than 0"));
  }
  if (FLAGS_finds < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--finds is ", FLAGS_finds, ", expected at least 1"));
  }
  if (FLAGS_device != "gpu" && FLAGS_device != "cpu") {
    return absl::InvalidArgumentError(
        absl::StrCat("--device is '", FLAGS_device, "', expected gpu or cpu"));
  }
  return absl::OkStatus();
}

absl::Status ParseAndRun(const std::vector<std::string>& args) {
  ASSIGN_OR_RETURN(const ParsedFlags parsed, ParseFlags(args, __FILE__));
  if (parsed.help) {
    std::printf("%s%s\n%s", kUsage, DescribeOperations().c_str(),
                DescribeFlags(__FILE__).c_str());
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckNumbers());
  const size_t expected = FLAGS_replay.empty() ? 2 : 1;
  if (parsed.positional.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        parsed.positional.size(), " arguments are given, expected ",
        expected == 2 ? "a variant and a layer" : "a variant",
        "; --help says more"));
  }
  ASSIGN_OR_RETURN(
      const Variant* variant,
      FindVariant(FLAGS_device == "gpu" ? Backend::kCuda : Backend::kCpu,
                  parsed.positional[0]));
  if (!FLAGS_out.empty()) {
    RETURN_IF_ERROR(CheckWritable(UserPath(FLAGS_out)));
  }
  Workers workers(Workers::Available());
  if (!FLAGS_replay.empty()) return Replay(*variant, workers);
  ASSIGN_OR_RETURN(const NamedLayer layer,
                   ParseLayer(parsed.positional[1], FLAGS_batch));
  return SearchWorst(*variant, layer.problem, workers);
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  return convlab::RunMain("adversary", [&] {
    return convlab::ParseAndRun({argv + 1, argv + argc});
  });
}
