#include "reports/records/test_records.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace convlab {
namespace {

ProfileEntry Entry(const std::string& name, int64_t calls, int64_t total_ns,
                   int64_t max_ns) {
  ProfileEntry entry;
  entry.name = name;
  entry.calls = calls;
  entry.total_ns = total_ns;
  entry.average_ns = static_cast<double>(total_ns) / static_cast<double>(calls);
  entry.min_ns = total_ns - max_ns;
  entry.max_ns = max_ns;
  return entry;
}

std::vector<ConvolutionRecord> Convolutions(const std::string& variant,
                                            int64_t size, int64_t unit_ns) {
  std::vector<ConvolutionRecord> convolutions(2);
  for (int i = 0; i < 2; ++i) {
    ConvolutionRecord& convolution = convolutions[i];
    convolution.batch = size;
    convolution.channels = i == 0 ? 1 : 12;
    convolution.height = convolution.width = i == 0 ? 70 : 33;
    convolution.filters = i == 0 ? 12 : 24;
    convolution.kernel_size = 5;
    convolution.flops = (i == 0 ? 2613600 : 12110400) * size;
    convolution.min_bytes = (i == 0 ? 228688 : 133011) * size;
    convolution.variant = variant;
    const int64_t ns = (i == 0 ? 1 : 3) * unit_ns * size / 1000;
    convolution.op_time_ns = {ns, ns + ns / 100, ns - ns / 100};
    convolution.kernel_time_ns = {ns - ns / 10, ns - ns / 10, ns - ns / 10};
  }
  return convolutions;
}

VariantRecord Describe(int rung, const std::string& accuracy_class) {
  VariantRecord variant;
  variant.backend = "cuda";
  variant.rung = rung;
  variant.accuracy_class = accuracy_class;
  variant.summary = absl::StrCat("What rung ", rung, " is.");
  variant.reason = absl::StrCat("Why rung ", rung, " should help.");
  return variant;
}

}  // namespace

RunRecord TestRecord(const std::string& milestone, const std::string& device,
                     int64_t size, const std::string& variant) {
  RunRecord record;
  record.milestone = milestone;
  record.command = {"/somewhere/" + milestone, "fa19", absl::StrCat(size)};
  record.network = record.model = "fa19";
  record.split = "t10k";
  record.size = size;
  record.device = device;
  record.threads = 16;
  record.git_revision = "0123456789ab";
  record.started = "2026-11-21T05:28:09+00:00";
  record.host.cpu = "A CPU";
  record.host.cores = 16;
  if (device == "gpu") {
    record.gpu.name = "NVIDIA H200";
    record.gpu.compute_capability = 90;
  }
  record.weights = "fa19.safetensors";
  record.weights_metadata[absl::StrCat("correct_", size)] =
      absl::StrCat(size * 9 / 10);
  record.convolutions = Convolutions(variant, size, kMs);
  record.variants[variant] = Describe(1, "fp32");
  record.correct = size * 9 / 10;
  record.usage.elapsed_ns = 1500 * kMs;
  record.usage.user_ns = 250 * kMs;
  record.output = {"New Inference", "Op Time: 0.001000",
                   absl::StrCat("ran ", milestone, " on the ", device)};
  return record;
}

RunRecord Verified(RunRecord record) {
  for (auto& [name, variant] : record.variants) {
    VerificationRecord& verification = variant.verification.emplace();
    verification.outcome = "right";
    verification.relative_error = 3e-7;
    verification.accuracy_class = variant.accuracy_class;
    verification.problems_tried = verification.problems_right = 30;
    verification.judge_version = 1;
  }
  record.output.clear();
  return record;
}

RunRecord Contributed(RunRecord record, const std::string& name) {
  record = Verified(std::move(record));
  VariantRecord variant = record.variants.begin()->second;
  variant.rung = 0;
  variant.track = "contributed";
  variant.verification->kernel = {name,
                                  "mini-dnn, prolog and epilog",
                                  name,
                                  {"kernel_of_" + name + ": memory 81 %"}};
  variant.verification->protection = "seccomp, limits";
  record.variants = {{name, variant}};
  for (ConvolutionRecord& convolution : record.convolutions) {
    convolution.variant = name;
    for (int64_t& ns : convolution.op_time_ns) ns -= ns / 10;
    for (int64_t& ns : convolution.kernel_time_ns) ns -= ns / 10;
  }
  return record;
}

RunRecord TestLadder(int64_t size) {
  RunRecord record = TestRecord("m4", "gpu", size, "naive");
  record.convolutions.clear();
  record.variants.clear();
  int rung = 0;
  for (const auto& [name, unit_ns] :
       {std::pair("naive", kMs), {"fast", kMs / 4}, {"slow", kMs / 2}}) {
    LadderRun& run = record.ladder.emplace_back();
    run.variant = name;
    run.relative_error = 3e-7;
    run.convolutions = Convolutions(name, size, unit_ns);
    run.correct = size * 9 / 10;
    record.variants[name] =
        Describe(++rung, absl::string_view(name) == "slow" ? "fp16" : "fp32");
  }
  LadderRun& odd = record.ladder.emplace_back();
  odd.variant = "odd";
  odd.failure = "rejected: too odd";
  record.variants["odd"] = Describe(++rung, "fp32");
  for (const int layer : {1, 2}) {
    record.peers.push_back(
        {layer, "cuDNN 9", "GEMM NCHW", "fp32", 1e-7, 12, {2 * kMs}});
  }
  return record;
}

RunRecord Traced(RunRecord record) {
  record.command.insert(record.command.end(), {"--profile", "/x/m.trace.json"});
  Profile& profile = record.profile.emplace();
  profile.tool = "CUPTI";
  profile.version = "13.0.1";
  profile.gpu_activities.entries = {
      Entry("convlab::cuda::(anonymous namespace)::NaiveKernel(float*)", 2,
            80 * kMs, 60 * kMs),
      Entry("[CUDA memcpy HtoD]", 1, 15 * kMs, 15 * kMs),
      Entry("void SoftmaxKernel<3>(long)", 1, 5 * kMs, 5 * kMs)};
  profile.api_calls.entries = {
      Entry("cudaFree", 11, 130 * kMs, 128 * kMs),
      Entry("cudaDeviceSynchronize", 4, 60 * kMs, 50 * kMs),
      Entry("cudaLaunchKernel", 3, 10 * kMs, 9 * kMs)};
  return record;
}

Profile TestCounters(const std::string& kernel, double dram_percent,
                     double sm_percent) {
  Profile profile;
  profile.tool = "ncu";
  LaunchCounters& launch = profile.launches.emplace_back();
  launch.kernel = kernel;
  launch.counters = {
      {"gpu__time_duration.sum", "ns", 4e6},
      {"dram__bytes_read.sum", "byte", 1e9},
      {"dram__bytes_write.sum", "byte", 5e8},
      {"dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", dram_percent},
      {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", sm_percent},
      {"sm__warps_active.avg.pct_of_peak_sustained_active", "%", 33.5},
      {"launch__registers_per_thread", "register/thread", 72}};
  return profile;
}

Records CompleteRecords() {
  Records records;
  records.folder = "runs";
  const auto add = [&](RunRecord record) {
    const std::string path =
        absl::StrCat("runs/", records.runs.size(), ".json");
    records.runs.push_back({path, std::move(record)});
  };
  add(TestRecord("m1", "cpu", 10000, "im2col_eigen"));
  add(TestRecord("m1", "gpu", 10000, "cudnn"));
  add(Traced(TestRecord("m1", "gpu", 10000, "cudnn")));
  add(TestRecord("m2", "cpu", 1000, "naive"));
  for (const int64_t size : {100, 1000, 10000}) {
    add(TestRecord("m3", "gpu", size, "naive"));
    add(TestLadder(size));
  }
  add(Traced(TestRecord("m3", "gpu", 10000, "naive")));
  add(TestRecord("final", "gpu", 10000, "fast"));
  add(Traced(TestRecord("final", "gpu", 10000, "fast")));
  records.traces["runs/m.trace.json"] = R"json({"traceEvents":[
{"ph":"M","name":"process_name","pid":1},
{"ph":"X","name":"cudaFree","cat":"api","ts":1000,"dur":128000},
{"ph":"X","name":"[CUDA memcpy HtoD]","cat":"memcpy","ts":130000,"dur":15000},
{"ph":"X","name":"NaiveKernel(float*)","cat":"kernel","ts":150000,"dur":60000}]})json";
  for (const char* variant : {"naive", "fast", "slow"}) {
    records.counters[variant] = TestCounters(absl::StrCat(variant, "_kernel"),
                                             variant[0] == 'f' ? 75 : 5, 40);
  }
  return records;
}

}  // namespace convlab
