#include "milestones/command_line.h"

#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/dataset/fashion_mnist.h"
#include "common/files/files.h"
#include "common/flags/flags.h"
#include "common/parallel/parallel.h"
#include "common/status/status.h"
#include "gflags/gflags.h"
#include "kernels/convolution/variants.h"
#include "kernels/simd/cpu_target.h"
#include "milestones/arguments.h"

DEFINE_string(model, "fa19",
              "network to run; --list names them, and FILE.onnx is one of "
              "your own");
DEFINE_string(size, "",
              "images to classify, from the first; all of them if not given");
DEFINE_string(weights, "",
              "weight file of the network: safetensors, MXNet .params or "
              "mini-dnn .bin; if not given, the trained weights, or those in "
              "FILE.onnx");
DEFINE_string(data, "",
              "folder with Fashion-MNIST's four IDX files, gzipped or plain; "
              "if not given, CONVLAB_DATA's, or Debian's");
DEFINE_string(split, "t10k", "images to classify: t10k or train");
DEFINE_string(
    device, "auto",
    "auto, cpu or gpu; auto is the CPU in m2, the GPU in m3 and m4, and "
    "elsewhere the GPU if there is one");
DEFINE_string(variant, "",
              "convolution to use, or one per layer with commas between; "
              "--list names them");
DEFINE_bool(fuse, false,
            "let each convolution compute the activation and the pooling that "
            "follow it, where its variant can; op times then include them");
DEFINE_string(kernel, "",
              "a convolution of your own: a file of the course (new-forward.cu "
              "or .cuh, cpu-new-forward.cc or .h), a file with a function "
              "convolution, a folder, or a compiled library; it is compiled, "
              "run in a process of its own and judged; may be given several "
              "times");
DEFINE_bool(quick, false,
            "judge a kernel on the network's own layers only, not on other "
            "sizes and values");
DEFINE_bool(competition, false,
            "time a kernel by the rules of SP26's competition: the prolog "
            "once, 5 operations to warm up, the median of 10");
DEFINE_bool(watch, false,
            "judge the kernels again whenever one of their files is saved, "
            "until Ctrl-C");
DEFINE_int32(threads, 0, "threads of the CPU; all cores if not given");
DEFINE_string(
    cpu_target, "auto",
    "vector instructions that the CPU's variants and layers use; auto "
    "takes the best that the processor has; --list names them");
DEFINE_int32(
    repeat, 0,
    "measurements of each operation, whose median is printed; 1 if not "
    "given, on the GPU's ladder 5");
DEFINE_bool(strict, false,
            "fail if the number of correct answers is not the expected one; "
            "also if not given, where the environment sets CI (--nostrict: not "
            "there). With --kernel it always fails");
DEFINE_string(record, "", "JSON file to write everything about the run to");
DEFINE_string(profile, "",
              "JSON file to write a trace of the GPU's work to, for "
              "ui.perfetto.dev or chrome://tracing; its sums go to standard "
              "error and into the record");
DEFINE_bool(check, false,
            "check the arguments, the kernels' files and the number of images, "
            "and end");
DEFINE_bool(list, false, "list the networks and variants, and end");

namespace convlab {
namespace {

// Sets the flags that the positional arguments stand for.
absl::Status TakePositional(const ParsedFlags& parsed) {
  std::string model, size;
  for (const std::string& text : parsed.positional) {
    std::string& target = LooksLikeSize(text) ? size : model;
    if (!target.empty() || text.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "unexpected argument '", text, "', expected [MODEL] [SIZE]"));
    }
    target = text;
  }
  const auto take = [&](const std::string& value, const char* flag,
                        std::string* target) -> absl::Status {
    if (value.empty()) return absl::OkStatus();
    if (parsed.given.count(flag) > 0 && *target != value) {
      return absl::InvalidArgumentError(
          absl::StrCat("both '", value, "' and --", flag, "=", *target,
                       " are given, expected one"));
    }
    *target = value;
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(take(model, "model", &FLAGS_model));
  return take(size, "size", &FLAGS_size);
}

// The backends on which the milestone may run for these flags, before it is
// known whether there is a GPU.
bool MayRunOn(Backend backend, const Milestone& milestone, Device device) {
  if (backend == Backend::kCpu) {
    return device == Device::kCpu ||
           (device == Device::kAuto && milestone.hardware != Hardware::kGpu);
  }
  return device != Device::kCpu && milestone.hardware != Hardware::kCpu;
}

// A name that none of these backends knows is wrong on every machine.
absl::Status CheckVariantNames(const Milestone& milestone,
                               const CommandLine& line) {
  std::vector<std::string> names;
  bool any_on_gpu = false;
  for (const Variant* variant : Variants()) {
    any_on_gpu |= variant->backend == Backend::kCuda;
    if (MayRunOn(variant->backend, milestone, line.device) &&
        !absl::c_linear_search(names, variant->name)) {
      names.emplace_back(variant->name);
    }
  }
  // A build without CUDA does not know the names of the GPU's variants.
  if (!any_on_gpu && MayRunOn(Backend::kCuda, milestone, line.device) &&
      names.empty()) {
    return absl::OkStatus();
  }
  for (const std::string& name : line.variants) {
    if (absl::c_linear_search(names, name)) continue;
    return absl::InvalidArgumentError(absl::StrCat("unknown variant '", name,
                                                   "': expected one of ",
                                                   absl::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
}

// Checks the flags of contributed kernels among each other.
absl::Status CheckKernelFlags(const Milestone& milestone,
                              const CommandLine& line) {
  if (line.kernels.empty()) {
    for (const auto& [flag, given] :
         {std::pair("quick", line.quick),
          std::pair("competition", line.competition),
          std::pair("watch", line.watch)}) {
      if (!given) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "--", flag, " is about a kernel of your own, expected --kernel too"));
    }
    return absl::OkStatus();
  }
  if (milestone.baseline) {
    return absl::InvalidArgumentError(
        absl::StrCat("--kernel is given, but ", milestone.name,
                     " runs the framework's own convolution"));
  }
  if (!line.variants.empty()) {
    return absl::InvalidArgumentError(
        "both --kernel and --variant are given, expected one");
  }
  if (!line.profile.empty() && (milestone.ladder || line.kernels.size() > 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--profile traces one kernel, but ",
        milestone.ladder ? absl::StrCat(milestone.name,
                                        " runs the ladder too: "
                                        "expected m3 or final")
                         : "--kernel names several: expected one"));
  }
  if (line.watch && !line.record.empty()) {
    return absl::InvalidArgumentError(
        "--watch runs many times, --record writes one run: expected one of "
        "them");
  }
  const std::set<std::string> different(line.kernels.begin(),
                                        line.kernels.end());
  if (different.size() != line.kernels.size()) {
    return absl::InvalidArgumentError("--kernel names the same file twice");
  }
  return absl::OkStatus();
}

// Checks for flags that are valid alone, but not together or not in this
// milestone.
absl::Status CheckAgreement(const Milestone& milestone,
                            const CommandLine& line) {
  if (milestone.baseline && !line.variants.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--variant is given, but ", milestone.name,
                     " runs the framework's own convolution"));
  }
  if (line.fuse && !line.kernels.empty()) {
    return absl::InvalidArgumentError(
        "--fuse is given, but a kernel of --kernel computes the convolution "
        "alone");
  }
  if (line.fuse && (milestone.baseline || milestone.ladder)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--fuse is given, but ", milestone.name,
                     " measures convolutions alone"));
  }
  RETURN_IF_ERROR(CheckKernelFlags(milestone, line));
  const bool cpu_only = milestone.hardware == Hardware::kCpu;
  if (cpu_only && line.device == Device::kGpu) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--device is gpu, but ", milestone.name, " is the ", milestone.title));
  }
  if (!line.profile.empty() && (line.device == Device::kCpu || cpu_only)) {
    return absl::InvalidArgumentError(
        "--profile traces the GPU's work, but this run is on the CPU");
  }
  std::vector<NamedFile> inputs = {{"--weights", line.weights},
                                   {"--model", line.found.onnx_file}};
  for (const std::string& kernel : line.kernels) {
    inputs.push_back({"--kernel", kernel});
  }
  RETURN_IF_ERROR(CheckSeparate(
      {{"--profile", line.profile}, {"--record", line.record}}, inputs));
  const size_t convolutions = line.network->Convolutions().size();
  if (convolutions == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(line.network->name, " has no convolution, which ",
                     milestone.name, " measures; classify runs it"));
  }
  if (line.variants.size() > 1 && line.variants.size() != convolutions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--variant names ", line.variants.size(), " variants, expected 1",
        convolutions > 1 ? absl::StrCat(" or ", convolutions) : "", " for ",
        line.network->name));
  }
  return CheckVariantNames(milestone, line);
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(
    const Milestone& milestone, const std::vector<std::string>& args) {
  ASSIGN_OR_RETURN(const ParsedFlags parsed,
                   ParseFlags(args, __FILE__, {"kernel"}));
  CommandLine line;
  line.help = parsed.help;
  line.list = FLAGS_list;
  if (line.help || line.list) return line;

  RETURN_IF_ERROR(TakePositional(parsed));
  line.model = FLAGS_model;
  ASSIGN_OR_RETURN(line.found, FindModel(FLAGS_model));
  line.network = line.found.network;
  if (!FLAGS_size.empty() || parsed.given.count("size") > 0) {
    ASSIGN_OR_RETURN(line.size, ParseSize(FLAGS_size));
  }
  if (FLAGS_split != "t10k" && FLAGS_split != "train") {
    return absl::InvalidArgumentError(
        absl::StrCat("--split is '", FLAGS_split, "', expected t10k or train"));
  }
  line.split = FLAGS_split;
  ASSIGN_OR_RETURN(line.device, ParseDevice(FLAGS_device));
  if (!FLAGS_variant.empty()) {
    line.variants = absl::StrSplit(FLAGS_variant, ',');
  }
  if (const auto kernels = parsed.repeated.find("kernel");
      kernels != parsed.repeated.end()) {
    for (const std::string& path : kernels->second) {
      line.kernels.push_back(UserPath(path));
    }
  }
  line.quick = FLAGS_quick;
  line.competition = FLAGS_competition;
  line.watch = FLAGS_watch;
  line.threads = Workers::Available();
  if (parsed.given.count("threads") > 0) {
    RETURN_IF_ERROR(CheckRange("threads", FLAGS_threads, 1, 1024));
    line.threads = FLAGS_threads;
  }
  if (parsed.given.count("repeat") > 0) {
    RETURN_IF_ERROR(CheckRange("repeat", FLAGS_repeat, 1, 1000000));
    line.repeat = FLAGS_repeat;
  }
  line.strict = FLAGS_strict;
  if (parsed.given.count("strict") == 0) {
    line.strict = !line.kernels.empty() || StrictByDefault();
  }
  line.check = FLAGS_check;
  line.fuse = FLAGS_fuse;
  line.cpu_target = FLAGS_cpu_target;
  line.weights = UserPath(FLAGS_weights);
  line.data = UserPath(FLAGS_data.empty() ? FashionMnistFolder() : FLAGS_data);
  line.record = UserPath(FLAGS_record);
  line.profile = UserPath(FLAGS_profile);
  RETURN_IF_ERROR(CheckAgreement(milestone, line));
  return line;
}

std::string HelpText(const Milestone& milestone) {
  std::set<std::string> refused;
  if (milestone.baseline) {
    refused = {"variant", "kernel", "quick", "competition", "watch"};
  }
  if (milestone.baseline || milestone.ladder) refused.insert("fuse");
  if (milestone.hardware == Hardware::kCpu) refused.insert("profile");
  return absl::StrCat(
      milestone.name, ": ", milestone.title, "\n",
      WrapText(milestone.help, 0, 0),
      "\n\nUsage: bazel run //milestones:", milestone.name,
      " -- [MODEL] [SIZE] [flags]\n\n", DescribeFlags(__FILE__, refused),
      "\nExit status: 0 done, 1 failed, 2 wrong usage or input, 3 the hardware "
      "asked for\nis not there.\n");
}

std::string ListText(const Milestone& milestone) {
  std::string text = "Networks:\n";
  for (const Network& network : Networks()) {
    std::vector<std::string> convolutions;
    for (const NetworkConvolution& layer : network.Convolutions()) {
      convolutions.push_back(absl::StrFormat(
          "%dx%dx%d to %dx%dx%d with K=%d", layer.input.channels,
          layer.input.size, layer.input.size, layer.output.channels,
          layer.output.size, layer.output.size, layer.kernel_size));
    }
    std::string description = absl::StrJoin(convolutions, ", ");
    if (!network.aliases.empty()) {
      absl::StrAppend(&description, " (also ",
                      absl::StrJoin(network.aliases, ", "), ")");
    }
    absl::StrAppend(&text, absl::StrFormat("  %-14s ", network.name),
                    WrapText(description, 17, 17), "\n");
  }
  std::vector<absl::string_view> targets = {"auto"};
  for (const CpuTarget target : SupportedCpuTargets()) {
    targets.push_back(Name(target));
  }
  absl::StrAppend(&text, "CPU targets of this machine:\n  ",
                  absl::StrJoin(targets, ", "), "\n");
  if (milestone.baseline) return text;
  for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
    if (backend == Backend::kCuda && milestone.hardware == Hardware::kCpu) {
      continue;
    }
    std::string variants;
    for (const Variant* variant : Variants()) {
      if (variant->backend != backend) continue;
      const std::string name = absl::StrFormat("  %-17s %-13s ", variant->name,
                                               Name(variant->accuracy));
      absl::StrAppend(&variants, name,
                      WrapText(variant->summary, name.size(), name.size()),
                      "\n");
    }
    if (!variants.empty()) {
      absl::StrAppend(&text, "Variants on the ", Name(backend), ":\n",
                      variants);
    }
  }
  return text;
}

}  // namespace convlab
