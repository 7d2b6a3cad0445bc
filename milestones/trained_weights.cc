#include "milestones/trained_weights.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/cpp/runfiles/runfiles.h"

namespace convlab {

absl::StatusOr<std::string> TrainedWeights(const std::string& program,
                                           const Network& network) {
  using bazel::tools::cpp::runfiles::Runfiles;
  std::string error;
  std::unique_ptr<Runfiles> runfiles(Runfiles::Create(program, &error));
  if (runfiles == nullptr) {
    std::error_code no_link;
    const std::string itself =
        std::filesystem::read_symlink("/proc/self/exe", no_link);
    runfiles.reset(Runfiles::Create(itself, &error));
  }
  if (runfiles == nullptr) {
    return absl::NotFoundError(
        "the trained weights are not beside the program: name a file with "
        "--weights, or use bazel run");
  }
  return runfiles->Rlocation(absl::StrCat("convlab/common/weights/models/",
                                          network.name, ".safetensors"));
}

}  // namespace convlab
