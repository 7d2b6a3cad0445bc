#include "tools/sweep/layer.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "common/status/status.h"
#include "kernels/convolution/reference.h"

namespace convlab {
namespace {

// A NaN whose four bytes are equal.
constexpr uint8_t kPoison = 0xff;

absl::StatusOr<Problem> ParseSizes(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  int64_t sizes[6];
  bool numbers = parts.size() == 6;
  for (size_t i = 0; numbers && i < 6; ++i) {
    numbers = absl::SimpleAtoi(parts[i], &sizes[i]);
  }
  if (!numbers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the layer is '", text, "', expected six whole numbers B,C,H,W,M,K"));
  }
  const Problem problem = {sizes[0], sizes[1], sizes[2],
                           sizes[3], sizes[4], sizes[5]};
  RETURN_IF_ERROR(CheckProblem(problem));
  return problem;
}

std::vector<float> RandomFloats(int64_t count, std::minstd_rand& generator) {
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

}  // namespace

absl::StatusOr<Problem> ParseLayer(absl::string_view text, int64_t batch) {
  if (text.find(',') != absl::string_view::npos) return ParseSizes(text);
  std::vector<std::string> names;
  for (const Network& network : Networks()) {
    const std::vector<StageShape> shapes = network.StageShapes();
    for (size_t i = 0; i < shapes.size(); ++i) {
      const std::string name = absl::StrCat(network.name, "-L", i + 1);
      if (text == name || (shapes.size() == 1 && text == network.name)) {
        const ConvolutionStage& stage = network.stages[i];
        const Problem problem = {
            batch,
            stage.input_channels,
            shapes[i].input_size,
            shapes[i].input_size,
            stage.output_channels,
            stage.kernel_size,
        };
        RETURN_IF_ERROR(CheckProblem(problem));
        return problem;
      }
      names.push_back(name);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown layer '", text, "', expected B,C,H,W,M,K or one of ",
      absl::StrJoin(names, ", ")));
}

double Quantile(std::vector<int64_t> samples, double share) {
  std::sort(samples.begin(), samples.end());
  const double place = share * (samples.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (place - below) * (samples[above] - samples[below]);
}

absl::StatusOr<Layer> Layer::Create(const Problem& problem) {
  ASSIGN_OR_RETURN(const cuda::DeviceFacts device, cuda::FindDevice());
  Layer layer;
  layer.problem_ = problem;
  ASSIGN_OR_RETURN(layer.x_,
                   cuda::DeviceBuffer::Allocate(4 * problem.input_elements()));
  ASSIGN_OR_RETURN(layer.k_,
                   cuda::DeviceBuffer::Allocate(4 * problem.kernel_elements()));
  ASSIGN_OR_RETURN(layer.y_,
                   cuda::DeviceBuffer::Allocate(4 * problem.output_elements()));
  ASSIGN_OR_RETURN(layer.flush_,
                   cuda::DeviceBuffer::Allocate(2 * device.l2_bytes));

  std::minstd_rand generator(20261121);
  const std::vector<float> x =
      RandomFloats(problem.input_elements(), generator);
  const std::vector<float> k =
      RandomFloats(problem.kernel_elements(), generator);
  RETURN_IF_ERROR(
      cuda::CopyToDevice(layer.x_.data(), x.data(), layer.x_.bytes()));
  RETURN_IF_ERROR(
      cuda::CopyToDevice(layer.k_.data(), k.data(), layer.k_.bytes()));

  constexpr int64_t kChecked = 5;
  Workers workers(2);
  Problem image = problem;
  image.batch = 1;
  for (int64_t i = 0; i < kChecked; ++i) {
    const int64_t b = i * (problem.batch - 1) / (kChecked - 1);
    layer.checked_.push_back(b);
    const std::vector<double> y = ReferenceConvolution(
        image, x.data() + b * image.input_elements(), k.data(), workers);
    layer.reference_.insert(layer.reference_.end(), y.begin(), y.end());
  }
  return layer;
}

absl::StatusOr<double> Layer::Verify(Convolution& convolution) {
  RETURN_IF_ERROR(cuda::FillBytes(y_.data(), kPoison, y_.bytes()));
  RETURN_IF_ERROR(convolution.Run(x_.floats(), k_.floats(), y_.floats()));
  RETURN_IF_ERROR(cuda::Synchronize());
  const int64_t elements = problem_.output_elements() / problem_.batch;
  std::vector<float> y(checked_.size() * elements);
  for (size_t i = 0; i < checked_.size(); ++i) {
    RETURN_IF_ERROR(cuda::CopyToHost(y.data() + i * elements,
                                     y_.floats() + checked_[i] * elements,
                                     elements * sizeof(float)));
  }
  return RelativeError(y.data(), reference_);
}

absl::StatusOr<std::vector<int64_t>> Layer::Time(Convolution& convolution,
                                                 int samples) {
  ASSIGN_OR_RETURN(cuda::Event start, cuda::Event::Create());
  ASSIGN_OR_RETURN(cuda::Event end, cuda::Event::Create());
  std::vector<int64_t> times;
  for (int i = 0; i <= samples; ++i) {
    RETURN_IF_ERROR(cuda::FillBytes(flush_.data(), i, flush_.bytes()));
    RETURN_IF_ERROR(start.Record());
    RETURN_IF_ERROR(convolution.Run(x_.floats(), k_.floats(), y_.floats()));
    RETURN_IF_ERROR(end.Record());
    ASSIGN_OR_RETURN(const int64_t time, end.Since(start));
    if (i > 0) times.push_back(time);
  }
  return times;
}

}  // namespace convlab
