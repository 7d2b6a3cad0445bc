// Stands in for the milestones in rerun_test: "runs" a kernel whose file holds
// its op time in ms, and writes the record of it. Another content fails.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "common/files/files.h"
#include "common/network/network.h"
#include "common/record/run_record.h"

int main(int argc, char** argv) {
  std::string kernel, path;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string(argv[i]) == "--kernel") kernel = argv[i + 1];
    if (std::string(argv[i]) == "--record") path = argv[i + 1];
  }
  const auto content = convlab::ReadFile(kernel);
  const auto network = convlab::FindNetwork(argc > 2 ? argv[2] : "");
  int64_t ms = 0;
  std::printf("Op Time of %s\n", kernel.c_str());
  if (!content.ok() || !network.ok() || !absl::SimpleAtoi(*content, &ms)) {
    return 1;
  }
  convlab::RunRecord record;
  record.milestone = argv[1];
  record.network = argv[2];
  record.size = std::atoll(argv[3]);
  record.device = "gpu";
  record.gpu.name = "NVIDIA H200";
  record.correct = record.size * 9 / 10;
  record.expected_correct = record.correct;
  convlab::VariantRecord& variant = record.variants["mine"];
  variant.accuracy_class = "fp32";
  variant.verification.emplace();
  variant.verification->outcome = "right";
  variant.verification->problems_tried = 1;
  variant.verification->problems_right = 1;
  variant.verification->judge_version = 1;
  variant.verification->accuracy_class = "fp32";
  variant.verification->kernel = {"mine", "plain", *content, {}};
  for (const convlab::NetworkConvolution& layer : (*network)->Convolutions()) {
    convlab::ConvolutionRecord& one = record.convolutions.emplace_back();
    one.batch = record.size;
    one.channels = layer.input.channels;
    one.height = one.width = layer.input.size;
    one.filters = layer.output.channels;
    one.kernel_size = layer.kernel_size;
    one.flops = 2 * one.batch * layer.output.values() * one.channels *
                one.kernel_size * one.kernel_size;
    one.min_bytes =
        4 * one.batch * (layer.input.values() + layer.output.values());
    one.variant = "mine";
    one.op_time_ns = {ms * 1000000, ms * 1000000 + 1000};
  }
  return convlab::WriteRunRecord(path, record).ok() ? 0 : 1;
}
