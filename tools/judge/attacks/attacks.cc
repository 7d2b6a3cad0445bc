#include "tools/judge/attacks/attacks.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/network/network.h"
#include "common/status/status.h"

namespace convlab {
namespace {

namespace fs = std::filesystem;

// A kernel that hangs is given up after so long; honest ones take far less,
// except in a process that a sanitizer slows down.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSeconds = 120;
#else
constexpr double kSeconds = 3;
#endif
// What an honest kernel never needs. A process that uses a GPU maps much more
// than one that does not.
constexpr int64_t kHostBytes = int64_t{1} << 30;
constexpr int64_t kHostBytesWithGpu = int64_t{8} << 30;

absl::StatusOr<const Network*> NetworkFor(const Attack& attack) {
  return FindNetwork(UsesGpu(attack) ? "fa19" : "sp19");
}

}  // namespace

absl::string_view NameOf(const Attack& attack) {
  const absl::string_view file = attack.file;
  return file.substr(0, file.rfind('.'));
}

bool UsesGpu(const Attack& attack) {
  return absl::StartsWith(attack.file, "gpu/");
}

AttackDescription Describe(const Attack& attack) {
  std::vector<absl::string_view> comment;
  for (const EmbeddedFile& file : AttackFiles()) {
    if (absl::string_view(file.name) != attack.file) continue;
    for (absl::string_view line : absl::StrSplit(file.content, '\n')) {
      if (!absl::ConsumePrefix(&line, "// ")) break;
      comment.push_back(line);
    }
  }
  const std::string text = absl::StrJoin(comment, " ");
  for (const char* const caught : {" Caught:", " Nothing to catch"}) {
    const size_t at = text.find(caught);
    if (at != std::string::npos)
      return {text.substr(0, at), text.substr(at + 1)};
  }
  return {text, ""};
}

absl::StatusOr<TemporaryFolder> WriteAttackFiles() {
  ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create());
  for (const EmbeddedFile& file : AttackFiles()) {
    const fs::path target = fs::path(folder.path()) / file.name;
    std::error_code error;
    fs::create_directories(target.parent_path(), error);
    RETURN_IF_ERROR(WriteFileAtomically(target.string(), file.content));
  }
  return folder;
}

absl::StatusOr<CompiledKernel> Compile(const Attack& attack,
                                       const TemporaryFolder& folder,
                                       int compute_capability) {
  ASSIGN_OR_RETURN(
      const KernelSource source,
      ReadKernelSource(absl::StrCat(folder.path(), "/", attack.file)));
  CompileOptions options;
  options.folder = folder.path();
  options.compute_capability = compute_capability;
  return CompileKernel(source, options);
}

absl::StatusOr<AttackResult> Try(const Attack& attack,
                                 const CompiledKernel& kernel,
                                 Workers& workers) {
  const bool gpu = UsesGpu(attack);
  JudgeOptions options;
  ASSIGN_OR_RETURN(options.network, NetworkFor(attack));
  options.batch = gpu ? 500 : 20;
  options.quick = attack.sizes == Attack::kNetwork;
  options.samples = 3;
  options.huge = false;
  options.process.gpu = gpu;
  options.process.seconds = kSeconds;
  options.process.host_bytes = gpu ? kHostBytesWithGpu : kHostBytes;
  AttackResult result;
  ASSIGN_OR_RETURN(result.verdict, Judge(kernel, options, workers));
  // Lines are broken for a terminal's sake.
  const std::string text =
      absl::StrJoin(absl::StrSplit(ToString(result.verdict),
                                   absl::ByAnyChar(" \n"), absl::SkipEmpty()),
                    " ");
  result.as_expected = result.verdict.outcome == attack.expected &&
                       absl::StrContains(text, attack.phrase);
  return result;
}

}  // namespace convlab
