#include "kernels/simd/cpu_target.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace convlab {
namespace {

std::vector<CpuTarget> Detect() {
  std::vector<CpuTarget> targets;
#if defined(__x86_64__)
  // The instructions that Highway's code for each set uses. The compiler's
  // runtime also checks that the system saves the registers.
  __builtin_cpu_init();
  const bool sse4 = __builtin_cpu_supports("ssse3") &&
                    __builtin_cpu_supports("sse4.1") &&
                    __builtin_cpu_supports("sse4.2");
  const bool avx2 =
      sse4 && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw");
  if (avx512) targets.push_back(CpuTarget::kAvx512);
  if (avx2) targets.push_back(CpuTarget::kAvx2);
  if (sse4) targets.push_back(CpuTarget::kSse4);
#elif defined(__aarch64__)
  targets.push_back(CpuTarget::kNeon);
#endif
  targets.push_back(CpuTarget::kBaseline);
  return targets;
}

std::optional<CpuTarget>& Forced() {
  static std::optional<CpuTarget> forced;
  return forced;
}

}  // namespace

absl::string_view Name(CpuTarget target) {
  switch (target) {
    case CpuTarget::kAvx512:
      return "avx512";
    case CpuTarget::kAvx2:
      return "avx2";
    case CpuTarget::kSse4:
      return "sse4";
    case CpuTarget::kNeon:
      return "neon";
    case CpuTarget::kBaseline:
      break;
  }
  return "baseline";
}

const std::vector<CpuTarget>& SupportedCpuTargets() {
  static const auto* const targets = new std::vector<CpuTarget>(Detect());
  return *targets;
}

CpuTarget ChosenCpuTarget() {
  return Forced().value_or(SupportedCpuTargets().front());
}

absl::Status ForceCpuTarget(absl::string_view name) {
  if (name == "auto") {
    Forced().reset();
    return absl::OkStatus();
  }
  std::vector<absl::string_view> names = {"auto"};
  for (const CpuTarget target : SupportedCpuTargets()) {
    if (Name(target) == name) {
      Forced() = target;
      return absl::OkStatus();
    }
    names.push_back(Name(target));
  }
  const std::string expected =
      absl::StrCat("expected one of ", absl::StrJoin(names, ", "));
  for (int target = 0; target < kCpuTargets; ++target) {
    if (Name(static_cast<CpuTarget>(target)) != name) continue;
    return absl::UnavailableError(absl::StrCat(
        "this processor cannot run the CPU target '", name, "': ", expected));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown CPU target '", name, "': ", expected));
}

}  // namespace convlab
