// Regenerates the passages of README.md and docs/results.md, and their charts,
// from the records in reports/measured: bazel run //reports:readme
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files/files.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "reports/passages.h"
#include "reports/program.h"

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

  ASSIGN_OR_RETURN(auto charts, PassageCharts(measured));
  // Drawn elsewhere, so that no chart is ever half-drawn.
  ASSIGN_OR_RETURN(const TemporaryFolder scratch, TemporaryFolder::Create());
  std::vector<std::string> scripts;
  for (const auto& [name, content] : charts) {
    RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(scratch.path(), "/", name), content));
    if (absl::EndsWith(name, ".gp")) scripts.push_back(name);
  }
  for (const std::string& script : scripts) {
    const absl::Status drawn = RunProgram({"gnuplot", script}, scratch.path());
    if (!drawn.ok()) {
      return absl::InternalError(
          absl::StrCat(drawn.message(), " (", script,
                       "); is gnuplot installed as tools/setup.sh does it?"));
    }
    const std::string picture =
        absl::StrCat(absl::StripSuffix(script, ".gp"), ".svg");
    ASSIGN_OR_RETURN(charts[picture],
                     ReadFile(absl::StrCat(scratch.path(), "/", picture)));
  }
  for (const auto& [name, content] : charts) {
    RETURN_IF_ERROR(WriteFileAtomically(
        absl::StrCat(workspace, "/reports/charts/", name), content));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace convlab

int main() { return convlab::RunMain("readme", convlab::Update); }
