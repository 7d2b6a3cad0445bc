// Regenerates the passages of README.md and of docs/, and their charts, from
// the records in reports/measured: bazel run //reports:readme
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "reports/passages.h"

namespace convlab {
namespace {

absl::Status Update() {
  const char* const workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (workspace == nullptr) {
    return absl::InvalidArgumentError(
        "where is README.md? Run it as bazel run //reports:readme");
  }
  const std::string measured = absl::StrCat(workspace, "/reports/measured");
  for (const std::string& name : GeneratedDocuments()) {
    const std::string path = absl::StrCat(workspace, "/", name);
    ASSIGN_OR_RETURN(const std::string document, ReadFile(path));
    const auto updated = UpdatePassages(document, measured);
    if (!updated.ok()) return Annotate(updated.status(), name);
    RETURN_IF_ERROR(WriteFileAtomically(path, *updated));
  }

  ASSIGN_OR_RETURN(const auto charts, PassageCharts(measured));
  const std::string folder = std::string(workspace) + "/reports/charts";
  for (const auto& [name, content] : charts) {
    RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(folder, "/", name), content));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace convlab

int main() { return convlab::RunMain("readme", convlab::Update); }
