// The benchmark: single convolutions, compared with the best of a library and
// with the hardware's ceilings in the same run.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/files/files.h"
#include "common/flags/flags.h"
#include "common/parallel/parallel.h"
#include "common/record/bench_record.h"
#include "common/record/build_info.h"
#include "common/record/library_record.h"
#include "common/record/network_record.h"
#include "common/record/recorded_command.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "gflags/gflags.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/library.h"
#include "kernels/judge/process/process.h"
#include "kernels/measure/sampled_reference.h"
#include "kernels/simd/cpu_target.h"
#include "tools/bench/accuracy_bench.h"
#include "tools/bench/cpu_bench.h"
#include "tools/bench/gpu_bench.h"
#include "tools/bench/library_bench.h"
#include "tools/bench/modes.h"
#include "tools/bench/network_bench.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"

DEFINE_string(layers, "all",
              "layers to measure: names such as fa19-L2, or fa19 for all of "
              "its layers, separated by commas; sizes B,C,H,W,M,K, separated "
              "by semicolons; all: the course's nine layers");
DEFINE_string(variants, "all",
              "names, separated by commas, as in m2 and m4; final for the "
              "choice of the program final; cudnn or onednn for the library "
              "alone");
DEFINE_bool(neighbours, false,
            "measure each layer's neighbours too, H and W +-1, M+-1, C+1 and "
            "K+-2, and compare the shares of their floors");
DEFINE_string(batch, "",
              "images of a layer that is given by its name, or several "
              "numbers, separated by commas; 10000 on the GPU and 1000 on the "
              "CPU if none is given");
DEFINE_string(class, "all",
              "accuracy classes to measure: fp32, fp32-normwise, tf32, fp16, "
              "separated by commas");
DEFINE_string(data, "uniform",
              "the family of data to take times on, listed above");
DEFINE_bool(accuracy, false,
            "take no times: compare each variant in float32, and each of "
            "cuDNN's plans, with the contract of class fp32 on every family of "
            "data; 5 images of a layer if --batch does not say otherwise");
DEFINE_string(device, "auto", "gpu, cpu, or auto: the GPU if there is one");
DEFINE_string(json, "", "write the results to this file");
DEFINE_int32(samples, 20,
             "samples of each time: at least this many, with --library or "
             "several --gpus at most");
DEFINE_double(seconds, 5,
              "stop measuring an implementation after this many seconds and "
              "three samples; --network takes all --samples as well");
DEFINE_bool(peers, true,
            "measure the library too: cuDNN or oneDNN (--nopeers: do not)");
DEFINE_int32(threads, 0, "threads of the CPU; 0: one for each core");
DEFINE_string(kernel, "",
              "measure this contributed kernel too (docs/judging.md): a file, "
              "a folder or a compiled library; may be given several times; "
              "--variants final for it, the choice of final and the library "
              "alone");
DEFINE_bool(once, false,
            "measure nothing: run each variant once on each layer that it "
            "takes, on the GPU, between the calls that start and stop a "
            "profiler (ncu --profile-from-start off)");
DEFINE_string(network, "",
              "measure whole networks instead, as classify runs them, beside "
              "cuDNN and cuBLAS layer by layer: names such as fa19,sp19, "
              "separated by commas; each with --batch images, 1 to 10000 if "
              "none are given");
DEFINE_string(weights, "",
              "with --network: take the weights of each network from this "
              "folder, such as fa19.safetensors; without, they are random");
DEFINE_bool(library, false,
            "measure the library for other programs instead (docs/library.md): "
            "what a call costs the host, and problems that people have");
DEFINE_int32(gpus, 0,
             "with --network: also on 1, 2, 4 and so on to so many GPUs at the "
             "same time, each with the images in its own memory; path "
             "\"devices\" in the table, with the images of all");
DEFINE_bool(list, false, "list the variants of --device and --class, and exit");
DEFINE_bool(wide, false,
            "tables with all columns on a terminal too; without, a terminal "
            "gets the main ones, which fit 100 columns");
DEFINE_bool(
    verbose, false,
    "print each of the library's plans with its time on standard error");

namespace convlab {
namespace {

constexpr char kUsage[] =
    "usage: bench [--flags]\n\n"
    "Measures convolutions and prints a row for each layer and implementation. "
    "Before\nit is timed, each is verified against float64 on random tensors; "
    "times are from\ncold caches, with device events on the GPU. A row has the "
    "median, the\ninter-quartile range, the minimum and the number n of "
    "samples; FLOP/s of the\ndefinition; GB/s of the least bytes; the share of "
    "the floor that the ceilings\nmeasured in the same run allow; how often it "
    "is as fast as the library's best of\nits class (cuDNN, oneDNN); and the "
    "arguments that measure it again. c is that\nof the worst output by the "
    "contract of class fp32 (docs/numerics.md).\n\n"
    "The families of data:\n\n";

// A file gets everything.
bool IsWide() { return FLAGS_wide || isatty(STDOUT_FILENO) == 0; }

absl::StatusOr<Backend> ChooseBackend() {
  if (FLAGS_device == "cpu") return Backend::kCpu;
  if (FLAGS_device != "gpu" && FLAGS_device != "auto") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--device is '", FLAGS_device, "', expected auto, cpu or gpu"));
  }
  const auto device = cuda::FindDevice();
  if (device.ok()) return Backend::kCuda;
  if (FLAGS_device == "auto") {
    absl::FPrintF(stderr, "bench: measuring on the CPU: %s\n",
                  device.status().message());
    return Backend::kCpu;
  }
  return Annotate(device.status(), "--device gpu");
}

absl::Status CheckNumbers() {
  if (FLAGS_samples < StoppingRule::kFewestSamples || FLAGS_samples > 10000) {
    return absl::InvalidArgumentError(
        absl::StrCat("--samples is ", FLAGS_samples, ", expected ",
                     StoppingRule::kFewestSamples, " to 10000"));
  }
  // Not "<= 0": NaN is no time either.
  if (!(FLAGS_seconds > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--seconds is ", FLAGS_seconds, ", expected more than 0"));
  }
  if (FLAGS_threads < 0 || FLAGS_threads > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads is ", FLAGS_threads, ", expected 0 to 4096"));
  }
  return absl::OkStatus();
}

absl::StatusOr<BenchOptions> ReadOptions(
    const std::vector<std::string>& kernels, const std::string& folder) {
  RETURN_IF_ERROR(CheckNumbers());
  BenchOptions options;
  // Wrong arguments are errors on every machine.
  ASSIGN_OR_RETURN(options.classes, ParseClasses(FLAGS_class));
  std::vector<int64_t> batches = {1};
  if (!FLAGS_batch.empty()) {
    ASSIGN_OR_RETURN(batches, ParseBatches(FLAGS_batch));
  }
  ASSIGN_OR_RETURN(options.layers, ParseLayers(FLAGS_layers, batches));
  ASSIGN_OR_RETURN(options.data, FindDataFamily(FLAGS_data));
  if (!FLAGS_json.empty()) {
    RETURN_IF_ERROR(CheckWritable(UserPath(FLAGS_json)));
  }
  ASSIGN_OR_RETURN(options.backend, ChooseBackend());
  const bool gpu = options.backend == Backend::kCuda;
  if (gpu) {
    RETURN_IF_ERROR(cuda::FindDevice().status());
  }
  ASSIGN_OR_RETURN(options.kernels,
                   CompileKernels(kernels, options.backend, folder));
  if (FLAGS_batch.empty()) {
    batches = {FLAGS_accuracy ? 5 : gpu ? 10000 : 1000};
  }
  ASSIGN_OR_RETURN(options.layers, ParseLayers(FLAGS_layers, batches));
  if (FLAGS_neighbours) options.layers = WithNeighbours(options.layers);
  ASSIGN_OR_RETURN(ChosenVariants chosen,
                   ParseVariants(FLAGS_variants, options.backend,
                                 options.classes, FLAGS_peers));
  options.variants = std::move(chosen.variants);
  options.fastest = chosen.fastest;
  options.peers = chosen.peers;
  options.rule.min_samples = FLAGS_samples;
  options.rule.max_samples = std::max(options.rule.max_samples, FLAGS_samples);
  options.rule.max_seconds = FLAGS_seconds;
  options.threads = FLAGS_threads;
  options.verbose = FLAGS_verbose;
  options.wide = IsWide();
  if (options.variants.empty() && !options.fastest && !options.peers) {
    return absl::InvalidArgumentError(
        absl::StrCat("nothing to measure: no variant on the ",
                     gpu ? "gpu" : "cpu", " is of --class ", FLAGS_class,
                     FLAGS_peers ? ", nor is the library"
                                 : ", and the library is not requested"));
  }
  return options;
}

// With --device gpu this does not need a GPU.
absl::Status List() {
  ASSIGN_OR_RETURN(const auto classes, ParseClasses(FLAGS_class));
  Backend backend = Backend::kCuda;
  if (FLAGS_device != "gpu") {
    ASSIGN_OR_RETURN(backend, ChooseBackend());
  }
  ASSIGN_OR_RETURN(const ChosenVariants all,
                   ParseVariants("all", backend, classes, /*peers=*/false));
  for (const Variant* variant : all.variants) std::puts(variant->name);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Workers>> StartWorkers() {
  try {
    return std::make_unique<Workers>(FLAGS_threads > 0 ? FLAGS_threads
                                                       : Workers::Available());
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("--threads ", FLAGS_threads, ": ", error.what()));
  }
}

absl::Status DescribeRun(const std::vector<std::string>& command, bool gpu,
                         const Workers& workers, BenchmarkRun& record) {
  record.command = RecordedCommand(command);
  record.git_revision = kGitRevision;
  record.build_mode = kBuildMode;
  record.started =
      absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone());
  record.device = gpu ? "gpu" : "cpu";
  record.threads = workers.count();
  if (!gpu) record.cpu_target = std::string(Name(ChosenCpuTarget()));
  record.host = ReadHostFacts();
  return gpu ? SetGpuFacts(record).status() : absl::OkStatus();
}

absl::Status Bench(const std::vector<std::string>& command,
                   const std::vector<std::string>& kernels) {
  ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  ASSIGN_OR_RETURN(const BenchOptions options,
                   ReadOptions(kernels, folder.path()));
  ASSIGN_OR_RETURN(const auto workers, StartWorkers());
  const bool gpu = options.backend == Backend::kCuda;
  if (FLAGS_once) {
    return gpu ? RunOnGpuOnce(options, *workers)
               : absl::InvalidArgumentError(
                     "--once is for the GPU, and --device is the CPU");
  }
  BenchRecord record;
  RETURN_IF_ERROR(DescribeRun(command, gpu, *workers, record));
  record.method = absl::StrCat(
      gpu ? "device events, L2 flushed before each sample; "
          : "host clock, implementations in turn, caches flushed before each "
            "sample; ",
      ToString(options.rule),
      "; each sample has new inputs, and outputs are compared with float64: ",
      kDrawnOutputs, " of each sample, all of one that was drawn");
  // A variant must not know what will be compared.
  record.check_seed = std::random_device()();
  Report report(options, record);
  if (!FLAGS_accuracy) record.data = options.data->name;
  if (FLAGS_accuracy) {
    record.method = "the worst output of all images";
    RETURN_IF_ERROR(BenchAccuracy(options, *workers, record, report));
  } else {
    RETURN_IF_ERROR(gpu ? BenchGpu(options, *workers, record, report)
                        : BenchCpu(options, *workers, record, report));
  }
  if (FLAGS_neighbours) report.PrintNeighbours();
  for (const cuda::Library* library : cuda::OpenedLibraries()) {
    record.gpu.libraries[library->name] = cuda::ToString(library->version);
  }
  // Written even if some failed, since the rest was measured.
  if (!FLAGS_json.empty()) {
    RETURN_IF_ERROR(WriteFileAtomically(UserPath(FLAGS_json), ToJson(record)));
  }
  return report.Outcome();
}

absl::Status BenchWholeNetworks(const std::vector<std::string>& command) {
  RETURN_IF_ERROR(CheckNumbers());
  NetworkBenchOptions options;
  ASSIGN_OR_RETURN(options.networks, ParseNetworks(FLAGS_network));
  options.wide = IsWide();
  options.batches = {1, 10, 100, 1000, 10000};
  if (!FLAGS_batch.empty()) {
    ASSIGN_OR_RETURN(options.batches, ParseBatches(FLAGS_batch));
  }
  if (std::set<int64_t>(options.batches.begin(), options.batches.end()).size() <
      options.batches.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch is '", FLAGS_batch, "', expected each once"));
  }
  if (!FLAGS_json.empty()) {
    RETURN_IF_ERROR(CheckWritable(UserPath(FLAGS_json)));
  }
  if (!FLAGS_weights.empty()) {
    ASSIGN_OR_RETURN(options.weights,
                     LoadWeightsOf(options.networks, UserPath(FLAGS_weights)));
  }
  ASSIGN_OR_RETURN(options.backend, ChooseBackend());
  options.peers = FLAGS_peers;
  options.samples = FLAGS_samples;
  options.seconds = FLAGS_seconds;
  options.gpus = FLAGS_gpus;
  const bool gpu = options.backend == Backend::kCuda;
  const int there = gpu ? cuda::CountDevices() : 0;
  if (options.gpus < 0 || options.gpus > there) {
    return absl::InvalidArgumentError(
        absl::StrCat("--gpus is ", options.gpus, ", expected 0 to ", there,
                     ", the GPUs that are there"));
  }
  ASSIGN_OR_RETURN(const auto workers, StartWorkers());
  NetworkRecord record;
  RETURN_IF_ERROR(DescribeRun(command, gpu, *workers, record));
  absl::Status status = BenchNetworks(options, *workers, record);
  // Written even if some failed, since the rest was measured.
  if (!FLAGS_json.empty()) {
    RETURN_IF_ERROR(WriteFileAtomically(UserPath(FLAGS_json), ToJson(record)));
  }
  return status;
}

absl::Status BenchTheLibrary(const std::vector<std::string>& command) {
  RETURN_IF_ERROR(CheckNumbers());
  if (!FLAGS_json.empty()) {
    RETURN_IF_ERROR(CheckWritable(UserPath(FLAGS_json)));
  }
  ASSIGN_OR_RETURN(const Backend backend, ChooseBackend());
  ASSIGN_OR_RETURN(const auto workers, StartWorkers());
  LibraryBenchOptions options;
  options.gpu = backend == Backend::kCuda;
  options.threads = FLAGS_threads;
  options.samples = FLAGS_samples;
  options.seconds = FLAGS_seconds;
  LibraryRecord record;
  RETURN_IF_ERROR(DescribeRun(command, options.gpu, *workers, record));
  absl::Status status =
      CatchRefusals([&] { return BenchLibrary(options, record); });
  // Written even if one failed, since those before it were measured.
  if (!FLAGS_json.empty()) {
    RETURN_IF_ERROR(WriteFileAtomically(UserPath(FLAGS_json), ToJson(record)));
  }
  return status;
}

absl::Status ParseAndRun(const std::vector<std::string>& args) {
  ASSIGN_OR_RETURN(const ParsedFlags parsed,
                   ParseFlags(args, __FILE__, {"kernel"}));
  if (parsed.help) {
    std::printf("%s%s\n%s", kUsage, DescribeDataFamilies().c_str(),
                DescribeFlags(__FILE__).c_str());
    return absl::OkStatus();
  }
  if (!parsed.positional.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument '", parsed.positional[0],
                     "'; --help lists the flags"));
  }
  std::set<std::string> on = parsed.given;
  for (const auto& [name, value] :
       {std::pair("accuracy", FLAGS_accuracy), std::pair("once", FLAGS_once),
        std::pair("library", FLAGS_library), std::pair("list", FLAGS_list)}) {
    if (!value) on.erase(name);
  }
  ASSIGN_OR_RETURN(const BenchMode mode, ChooseBenchMode(on));
  RETURN_IF_ERROR(CheckFlagsOf(mode, parsed.given));
  if (mode == BenchMode::kList) return List();
  std::vector<std::string> command = {"bench"};
  command.insert(command.end(), args.begin(), args.end());
  if (mode == BenchMode::kNetwork) return BenchWholeNetworks(command);
  if (mode == BenchMode::kLibrary) return BenchTheLibrary(command);
  const auto kernels = parsed.repeated.find("kernel");
  return Bench(command, kernels == parsed.repeated.end()
                            ? std::vector<std::string>()
                            : kernels->second);
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  convlab::RunAsKernelProcessIfAsked(argc, argv);
  return convlab::RunMain("bench", [&] {
    return convlab::ParseAndRun({argv + 1, argv + argc});
  });
}
