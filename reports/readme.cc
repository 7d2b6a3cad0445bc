// Writes README.md's generated passages anew from the records in
// reports/measured: bazel run //reports:readme
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_format.h"
#include "common/files/files.h"
#include "common/status/status.h"
#include "reports/readme_content.h"

namespace convlab {
namespace {

absl::Status Update() {
  const char* const workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (workspace == nullptr) {
    return absl::InvalidArgumentError(
        "where is README.md? Run it as bazel run //reports:readme");
  }
  const std::string path = std::string(workspace) + "/README.md";
  ASSIGN_OR_RETURN(const std::string readme, ReadFile(path));
  ASSIGN_OR_RETURN(
      const std::string updated,
      UpdateReadme(readme, std::string(workspace) + "/reports/measured"));
  return WriteFileAtomically(path, updated);
}

}  // namespace
}  // namespace convlab

int main() {
  const absl::Status status = convlab::Update();
  if (!status.ok()) absl::FPrintF(stderr, "readme: %s\n", status.message());
  return convlab::ExitStatus(status);
}
