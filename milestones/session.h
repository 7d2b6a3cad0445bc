// The work of every milestone around its measurements: it chooses the device,
// loads data and weights, prints the course's lines and fills the record.
#ifndef MILESTONES_SESSION_H_
#define MILESTONES_SESSION_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dataset/fashion_mnist.h"
#include "common/parallel/parallel.h"
#include "common/record/activities.h"
#include "common/record/run_record.h"
#include "common/weights/weights.h"
#include "kernels/convolution/convolution.h"
#include "kernels/cuda/device.h"
#include "kernels/inference/inference.h"
#include "kernels/judge/source/interface.h"
#include "milestones/command_line.h"
#include "milestones/milestone.h"

namespace convlab {

struct Session {
  Session(const Milestone& its_milestone, const CommandLine& its_line)
      : milestone(its_milestone),
        line(its_line),
        ladder(its_milestone.ladder && its_line.variants.empty()),
        workers(its_line.threads) {}

  // Prints a line on standard output, which the record keeps verbatim.
  void Print(const std::string& text);
  // Prints a line on standard error, after the program's name.
  void Tell(const std::string& text) const;
  // Tells of a sample that lies far from the others (counts.h).
  void TellFarSample(const std::vector<ConvolutionRecord>& convolutions) const;

  const Milestone& milestone;
  const CommandLine line;
  const bool ladder;  // runs every variant, not one
  Backend backend = Backend::kCpu;
  bool traced = false;  // --profile, on a GPU that can be traced
  // Of a traced run with a contributed kernel: what its process did.
  absl::StatusOr<Activities> kernel_activities =
      absl::UnavailableError("the kernel was not run");
  cuda::DeviceFacts gpu;    // of Backend::kCuda
  std::string why_not_gpu;  // for the user; may be empty
  Dataset dataset;
  int64_t size = 0;  // images to classify
  NetworkWeights weights;
  Workers workers;
  std::vector<KernelSource> kernels;  // of --kernel
  // Where progress and messages go instead of the terminal, if not null.
  std::function<void(double)> progress;
  std::function<void(const std::string&)> tell;
  RunRecord record;
  // What JudgeCounts found out: with an error, the program fails at its end.
  absl::Status counted;
};

// Checks what a run would refuse after its command line: --kernel and the
// number of images. It needs no GPU, whatever --device is.
absl::Status CheckInputs(const Milestone& milestone, const CommandLine& line);

// Does all checks that need no data, chooses the device and, for --profile,
// starts the tracing; if tracing is not possible, a message says so and the run
// continues. Returns Unavailable if the required GPU is missing.
absl::StatusOr<std::unique_ptr<Session>> OpenSession(const Milestone& milestone,
                                                     const CommandLine& line);

// Loads data and weights, prints the course's lines for it, and fills the
// record with everything that is known before the run. `command` is the
// program's argv.
absl::Status LoadSession(Session& session,
                         const std::vector<std::string>& command);

// Ends the tracing, prints the resource line, writes the requested record and
// trace, and prints the profile.
absl::Status CloseSession(Session& session);

// Runs the network with one variant per convolution, behind a progress bar.
absl::StatusOr<InferenceResult> RunNetwork(
    Session& session, const std::vector<const Variant*>& variants, int repeat);

// The number of images that each repetition classifies correctly.
std::vector<int64_t> CorrectAnswers(const Session& session,
                                    const InferenceResult& result);

// Verifies the variant on those of the network's convolutions that it computes,
// by `variants`, with a few images, and returns the largest relative error;
// DataLoss if it exceeds the variant's class.
absl::StatusOr<double> VerifyLayers(
    Session& session, const Variant& variant,
    const std::vector<const Variant*>& variants);

// The record of a variant that VerifyLayers found to be right there.
VerificationRecord Verified(const Variant& variant,
                            const std::vector<const Variant*>& variants,
                            double relative_error);

// Describes the convolutions for the record, with the result's times. `names`
// are the variants', one for each convolution.
std::vector<ConvolutionRecord> DescribeConvolutions(
    const Session& session, const std::vector<std::string>& names,
    const InferenceResult& result);

VariantRecord DescribeVariant(const Variant& variant);

}  // namespace convlab

#endif  // MILESTONES_SESSION_H_
