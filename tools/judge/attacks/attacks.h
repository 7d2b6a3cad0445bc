// Contributed kernels that cheat, fail or only look as if they did, and the
// verdicts that the judge must give them.
#ifndef TOOLS_JUDGE_ATTACKS_ATTACKS_H_
#define TOOLS_JUDGE_ATTACKS_ATTACKS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/files/files.h"
#include "common/parallel/parallel.h"
#include "kernels/judge/source/compile.h"
#include "kernels/judge/source/embedded_files.h"
#include "kernels/judge/verdict.h"

namespace convlab {

struct Attack {
  const char* file;         // "gpu/late_thread.cu": the folder is the backend
  VerdictOutcome expected;  // kRight for those who are honest, or gain nothing
  const char* phrase;       // which the verdict's text must hold
  enum Sizes { kNetwork, kAllSizes } sizes = kNetwork;  // on which it is judged
};

// All attacks: those for the CPU, then those for the GPU.
const std::vector<Attack>& Attacks();

// The files of cpu/ and gpu/, defined in a generated file.
const std::vector<EmbeddedFile>& AttackFiles();

// "cpu/late_thread".
absl::string_view NameOf(const Attack& attack);
bool UsesGpu(const Attack& attack);

// What the attack does, and what must catch it: the two sentences with which
// its file begins.
struct AttackDescription {
  std::string trick;
  std::string caught;  // "Caught: ..." or "Nothing to catch..."
};
AttackDescription Describe(const Attack& attack);

// A folder that holds all files of AttackFiles().
absl::StatusOr<TemporaryFolder> WriteAttackFiles();

// Compiles an attack in such a folder, for the GPU of this compute capability
// (0: none).
absl::StatusOr<CompiledKernel> Compile(const Attack& attack,
                                       const TemporaryFolder& folder,
                                       int compute_capability);

struct AttackResult {
  Verdict verdict;
  bool as_expected = false;
};

// Judges a compiled attack on a small network: sp19 with 20 images on the CPU,
// fa19 with 500 on the GPU. Errors are those of the judge.
absl::StatusOr<AttackResult> Try(const Attack& attack,
                                 const CompiledKernel& kernel,
                                 Workers& workers);

}  // namespace convlab

#endif  // TOOLS_JUDGE_ATTACKS_ATTACKS_H_
