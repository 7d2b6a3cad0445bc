// A run record in which every field has a value, and other examples.
#ifndef COMMON_RECORD_TEST_RECORD_H_
#define COMMON_RECORD_TEST_RECORD_H_

#include <cstdint>

#include "common/record/network_record.h"
#include "common/record/run_record.h"

namespace convlab {

inline RunRecord Example() {
  RunRecord record;
  record.milestone = "m2";
  record.command = {"m2", "fa19", "--record", "a \"b\"\n"};
  record.network = "fa19";
  record.model = "ece408";
  record.split = "t10k";
  record.size = 1000;
  record.slice = 500;
  record.device = "cpu";
  record.threads = 2;
  record.cpu_target = "avx2";
  record.git_revision = "0123456789ab";
  record.build_mode = "opt";
  record.started = "2026-11-21T01:02:03Z";
  record.host = {"A CPU", 2, int64_t{24} << 30, "Debian", "Linux 6"};
  record.gpu = {"A GPU", 90,      132,     int64_t{140} << 30,   13010,
                13000,   1980000, 2619000, {{"cuDNN", "9.19.0"}}};
  record.weights = "fa19.safetensors";
  record.weights_metadata = {{"correct_100", "91"}, {"recipe", "AdamW"}};
  record.convolutions = {
      {1000, 1, 70, 70, 12, 5, 2613600000, 228688000, "naive", {}, {}},
      {1000,
       12,
       33,
       33,
       24,
       5,
       12110400000,
       int64_t{1} << 40,
       "naive",
       {5, 6, 7},
       {3, 4, 5},
       "ReLU",
       {8, 9, 10},
       2}};
  record.variants["naive"] = {"cpu",  1,        "fp32", "loops",
                              "none", "lesson", "",     "avx2"};
  VerificationRecord& verification =
      record.variants["naive"].verification.emplace();
  verification = {
      "restricted",
      {"wrong for K = 3"},
      2e-7,
      "fp32",
      30,
      29,
      1,
      "seccomp",
      false,
      "note",
      KernelRecord{"mine", "mini-dnn", "abcd", {"mine: memory 9 %"}},
      true};
  record.ladder.resize(1);
  record.ladder[0] = {"naive", "too slow", 1.25e-7, record.convolutions,
                      904,     {31},       250,     int64_t{5} << 30,
                      {904}};
  record.peers = {{2, "cuDNN 9", "WINOGRAD NHWC", "fp32", 3e-7, 12, {41, 42}}};
  record.overlaps = {{1, 2000, 8, {51}, {31, 32}}};
  record.correct = 905;
  record.repetitions_correct = {905, 905, 905};
  record.expected_correct = 905;
  record.load_ns = 11;
  record.inference_ns = {21, 22, 23};
  record.usage = {1, 2, 3, 4096};
  record.device_memory_peak_bytes = int64_t{3} << 30;
  record.output = {"New Inference", "Op Time: 0.000006"};
  Profile& profile = record.profile.emplace();
  profile.tool = "CUPTI";
  profile.version = "13.0";
  profile.gpu_activities.entries = {
      {"[CUDA memcpy HtoD]", 20, 16772000, 838600.0, 1120, 16152000, 4096, {}}};
  profile.api_calls.missing = "not in the file";
  profile.launches = {{"kernel(int)",
                       "(1, 2, 3)",
                       "(4, 5, 6)",
                       {{"dram__bytes.sum", "byte", 27595520}}}};
  return record;
}

// A benchmark of whole networks with a row of each provider.
inline NetworkRecord NetworksExample() {
  NetworkRecord record;
  record.command = {"bench", "--network", "fa19"};
  record.device = "gpu";
  record.peer = "cuDNN 9.19.0";
  NetworkRow row;
  row.network = "fa19";
  row.images = 100;
  row.provider = "convlab";
  row.path = kDevicePath;
  row.least_us = 20;
  row.p50_us = 25;
  row.p90_us = 30;
  row.p99_us = 35;
  row.images_per_s = 4e6;
  row.samples = 20;
  row.sm_clock_mhz = 1980;
  row.stages_us = {0, 10, 15};
  record.rows = {row};
  row.provider = "cudnn";
  row.least_us = 40;
  row.p50_us = 50;
  row.p90_us = 60;
  row.p99_us = 70;
  row.images_per_s = 2e6;
  row.stages_us = {};
  row.plans = {"FFT", "engine 1"};
  record.rows.push_back(row);
  record.omissions.push_back({"fa18", 1, "cudnn", "", "no plan"});
  return record;
}

}  // namespace convlab

#endif  // COMMON_RECORD_TEST_RECORD_H_
