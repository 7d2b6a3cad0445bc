// A plan as a table and as a picture: what each stage does, its operations and
// bytes beside those of the layers one by one, and its time beside its floor.
#ifndef MILESTONES_CLASSIFYING_PLAN_REPORT_H_
#define MILESTONES_CLASSIFYING_PLAN_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/hardware/rates.h"
#include "common/network/network.h"
#include "kernels/compiled/plan.h"

namespace convlab {

// A stage of a run over some images. The first is the enlarging of the images.
struct StageReport {
  std::string name;  // "conv 2, fc 1"
  std::string does;  // "folded conv 2, fc 1; fused bias, tanh", or "-"
  TensorShape output;
  double layer_flops, flops;  // layer by layer, and in the plan
  // What is read and written, parameters included: the same.
  double layer_bytes, bytes;
  // Of these, what memory must move at least, whatever the caches hold: the
  // images, the parameters once, the logits.
  double least_bytes;
  double ns;
  double floor_ns;  // for its operations and its least bytes
};

struct PlanReport {
  std::string network;
  int64_t images;
  std::string device;  // "the CPU, 2 threads, avx512"
  Rates rates;         // measured on it
  std::vector<StageReport> stages;
  int64_t timed_images;  // from whose times all are scaled; 0: not scaled
};

// `stage_ns` and `kernels` are CompiledNetwork::StageNs and ::StageKernels for
// `images` images of image_size x image_size bytes; `rates` has the rates of
// float32 and memory. `timed_images` is CompiledNetwork::StageImages.
PlanReport ReportPlan(const Network& network, const Plan& plan, int64_t images,
                      int image_size, const std::vector<int64_t>& stage_ns,
                      const std::vector<std::string>& kernels,
                      const std::string& device, const Rates& rates,
                      int64_t timed_images = 0);

std::string PlanTable(const PlanReport& report);
std::string PlanPicture(const PlanReport& report);  // SVG

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_PLAN_REPORT_H_
