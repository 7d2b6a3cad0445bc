#include "milestones/standing.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/hardware/floor.h"
#include "common/hardware/rates.h"
#include "common/record/statistics.h"
#include "common/status/status.h"
#include "kernels/baseline/convolution.h"
#include "kernels/convolution/fastest.h"
#include "kernels/convolution/variants.h"
#include "kernels/cuda/device.h"
#include "kernels/measure/gpu_tensors.h"
#include "kernels/measure/inputs.h"
#include "kernels/measure/op_time.h"

namespace convlab {
namespace {

// The CPU's first rung takes milliseconds for an image.
constexpr int64_t kMostImagesOnCpu = 50;
// A lesson that takes longer than this is timed once; its time varies by less
// than a percent.
constexpr int kSamples = 3;
constexpr int64_t kLongNs = 10'000'000;

// A layer's tensors in the memory of the session's backend.
struct Tensors {
  std::vector<float> host_x, host_k, host_y;
  cuda::DeviceBuffer device_x, device_k, device_y;
  const float* x;
  const float* k;
  float* y;
};

absl::Status Make(Backend backend, const Problem& problem, Tensors& tensors) {
  tensors.host_k = RandomFloats(problem.kernel_elements(), 2);
  if (backend == Backend::kCpu) {
    tensors.host_x = RandomFloats(problem.input_elements(), 1);
    tensors.host_y.resize(problem.output_elements());
    tensors.x = tensors.host_x.data();
    tensors.k = tensors.host_k.data();
    tensors.y = tensors.host_y.data();
    return absl::OkStatus();
  }
  for (const auto& [buffer, elements] :
       {std::pair(&tensors.device_x, problem.input_elements()),
        std::pair(&tensors.device_k, problem.kernel_elements()),
        std::pair(&tensors.device_y, problem.output_elements())}) {
    ASSIGN_OR_RETURN(*buffer, cuda::DeviceBuffer::Allocate(
                                  elements * int64_t{sizeof(float)}));
  }
  RETURN_IF_ERROR(FillRepeated(
      RandomFloats(std::min(kInputPeriod, problem.input_elements()), 1),
      tensors.device_x));
  RETURN_IF_ERROR(FillRepeated(tensors.host_k, tensors.device_k));
  tensors.x = tensors.device_x.floats();
  tensors.k = tensors.device_k.floats();
  tensors.y = tensors.device_y.floats();
  return absl::OkStatus();
}

// The median op time of the variant, after a run to warm up.
absl::StatusOr<double> MedianOpNs(const Variant& variant,
                                  const Problem& problem,
                                  const Tensors& tensors,
                                  const Resources& resources) {
  ASSIGN_OR_RETURN(const auto convolution, variant.Create(problem, resources));
  const auto run = [&] {
    return convolution->Run(tensors.x, tensors.k, tensors.y,
                            /*stream=*/nullptr);
  };
  std::vector<int64_t> samples;
  for (int i = 0; i <= kSamples; ++i) {
    int64_t ns = 0;
    if (variant.backend == Backend::kCpu) {
      ASSIGN_OR_RETURN(ns, HostNs(run));
    } else {
      ASSIGN_OR_RETURN(OpTimer timer, OpTimer::Create());
      ASSIGN_OR_RETURN(const OpTime time, timer.Time(run));
      ns = time.op_ns;
    }
    if (i > 0) samples.push_back(ns);
    if (i > 0 && ns > kLongNs) break;
  }
  return Median(samples);
}

// Adds the layer's time to each of the standing's sums. A variant that does not
// take the layer has a negative sum from then on.
absl::Status AddLayer(Session& session, const Problem& problem, double scale,
                      Standing& standing) {
  Resources resources;
  resources.workers = &session.workers;
  Tensors tensors;
  RETURN_IF_ERROR(Make(session.backend, problem, tensors));
  const auto add = [&](const Variant& variant, double& sum) -> absl::Status {
    if (sum < 0) return absl::OkStatus();
    const absl::StatusOr<double> ns =
        MedianOpNs(variant, problem, tensors, resources);
    if (absl::IsUnimplemented(ns.status()) ||
        absl::IsUnavailable(ns.status()) ||
        absl::IsResourceExhausted(ns.status())) {
      sum = -1;
      return absl::OkStatus();
    }
    if (!ns.ok()) return ns.status();
    sum += scale * *ns;
    return absl::OkStatus();
  };
  for (RungTime& lesson : standing.lessons) {
    RETURN_IF_ERROR(add(*lesson.variant, lesson.ns));
  }
  ASSIGN_OR_RETURN(const Variant* fastest,
                   FastestVariant(session.backend, problem));
  RETURN_IF_ERROR(add(*fastest, standing.fastest_ns));
  if (session.backend == Backend::kCuda) {
    RETURN_IF_ERROR(add(kCudnnVariant, standing.cudnn_ns));
  }
  return absl::OkStatus();
}

std::string Milliseconds(double ns) {
  const double ms = ns * 1e-6;
  return ms < 999.5 ? absl::StrFormat("%.3g ms", ms)
                    : absl::StrFormat("%.0f ms", ms);
}

// Two significant digits of a number from 1 on, without an exponent: "1.4",
// "28", "1100".
std::string TwoDigits(double value) {
  if (value < 9.95) return absl::StrFormat("%.1f", value);
  const double step = std::pow(10, std::floor(std::log10(value)) - 1);
  return absl::StrFormat("%.0f", std::round(value / step) * step);
}

// "2.1 times as fast as cuDNN (5.1 ms)", "final (0.23 ms) is 28 times as fast"
std::string Ratio(double ns, absl::string_view other, double other_ns) {
  const std::string named =
      absl::StrCat(other, " (", Milliseconds(other_ns), ")");
  return ns <= other_ns ? absl::StrCat(TwoDigits(other_ns / ns),
                                       " times as fast as ", named)
                        : absl::StrCat(named, " is ", TwoDigits(ns / other_ns),
                                       " times as fast");
}

}  // namespace

absl::StatusOr<Standing> MeasureStanding(Session& session) {
  Standing standing;
  standing.images = session.size;
  standing.measured_images = session.backend == Backend::kCpu
                                 ? std::min(session.size, kMostImagesOnCpu)
                                 : session.size;
  for (const Variant* variant : Variants()) {
    if (variant->backend == session.backend &&
        variant->track == Track::kLesson) {
      standing.lessons.push_back({variant, 0});
    }
  }
  if (session.backend == Backend::kCpu) standing.cudnn_ns = -1;
  const double scale =
      static_cast<double>(standing.images) / standing.measured_images;
  const Network& network = *session.line.network;
  const std::optional<Rates> rates = DataSheetRates(session.gpu.name);
  double floor_ns = 0;
  for (size_t i = 0; i < network.Convolutions().size(); ++i) {
    RETURN_IF_ERROR(AddLayer(
        session, ConvolutionProblem(network, i, standing.measured_images),
        scale, standing));
    const Problem whole = ConvolutionProblem(network, i, session.size);
    const std::optional<double> floor =
        rates ? FloorNs(whole.flops(), whole.min_bytes(), AccuracyClass::kFp32,
                        *rates)
              : std::nullopt;
    floor_ns = floor && floor_ns >= 0 ? floor_ns + *floor : -1;
  }
  if (floor_ns > 0) standing.floor_ns = floor_ns;
  auto& lessons = standing.lessons;
  lessons.erase(
      std::remove_if(lessons.begin(), lessons.end(),
                     [](const RungTime& lesson) { return lesson.ns < 0; }),
      lessons.end());
  return standing;
}

std::vector<std::string> DescribeStanding(const Standing& standing,
                                          double op_ns) {
  std::vector<std::string> lines;
  // The lesson that is next: the slowest of the faster ones.
  const RungTime* next = nullptr;
  const RungTime* passed = nullptr;
  size_t slower = 0;
  for (const RungTime& lesson : standing.lessons) {
    if (lesson.ns < op_ns) {
      if (next == nullptr || lesson.ns > next->ns) next = &lesson;
    } else {
      ++slower;
      if (passed == nullptr || lesson.ns < passed->ns) passed = &lesson;
    }
  }
  std::string place = absl::StrCat("faster than ", slower, " of ",
                                   standing.lessons.size(), " lessons");
  if (passed != nullptr) {
    absl::StrAppend(&place, ", the last ", passed->variant->name, " (",
                    Milliseconds(passed->ns), ")");
  }
  if (standing.measured_images < standing.images) {
    absl::StrAppend(&place, ", which were measured on ",
                    standing.measured_images, " images");
  }
  lines.push_back(std::move(place));
  std::string peers;
  if (standing.cudnn_ns > 0) {
    peers = absl::StrCat(Ratio(op_ns, "cuDNN", standing.cudnn_ns), ", ");
  }
  if (standing.fastest_ns > 0) {
    absl::StrAppend(&peers, Ratio(op_ns, "final", standing.fastest_ns));
  }
  if (!peers.empty()) lines.push_back(std::move(peers));
  if (standing.floor_ns) {
    lines.push_back(absl::StrFormat("%.2g %% of the floor, %s",
                                    100 * *standing.floor_ns / op_ns,
                                    Milliseconds(*standing.floor_ns)));
  }
  if (next != nullptr) {
    lines.push_back(absl::StrCat(
        "next: ", next->variant->name, " (", Milliseconds(next->ns), "). ",
        next->variant->summary, " ", next->variant->reason));
  }
  return lines;
}

}  // namespace convlab
