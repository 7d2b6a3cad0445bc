// The vector instructions that the CPU's kernels use. One program holds code
// for several instruction sets and uses the best that the machine has.
//
// A kernel's file is compiled once per set by Highway's foreach_target.h.
// Highway's own dispatch is in a shared library that would have to be shipped
// with the program, so the choice is made here:
//
//   const auto kernel = ChosenKernel(CONVLAB_KERNELS(GetKernel));
#ifndef KERNELS_SIMD_CPU_TARGET_H_
#define KERNELS_SIMD_CPU_TARGET_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace convlab {

// In ascending order. The baseline runs everywhere, with one lane.
enum class CpuTarget { kBaseline, kNeon, kSse4, kAvx2, kAvx512 };
constexpr int kCpuTargets = 5;

absl::string_view Name(CpuTarget target);  // "baseline", "neon", ...

// The targets that this machine can run, best first; always includes the
// baseline.
const std::vector<CpuTarget>& SupportedCpuTargets();

// The best supported target, or the one that ForceCpuTarget chose.
CpuTarget ChosenCpuTarget();

// Makes the kernels that are created from now on use the named set; "auto" is
// the best. Returns InvalidArgument for an unknown name and Unavailable for a
// target that this machine cannot run; both list the targets that it can run.
// Must not be called while another thread creates a kernel.
absl::Status ForceCpuTarget(absl::string_view name);

// One function per target, which describes the target's kernel; null for
// targets of other processors.
template <typename Kernel>
using KernelTable = std::array<Kernel (*)(), kCpuTargets>;

// To be used in the part of a file that is compiled once (#if HWY_ONCE), in the
// namespace around HWY_NAMESPACE.
#define CONVLAB_KERNELS(FUNCTION)                                     \
  (::convlab::KernelTable<decltype(HWY_STATIC_DISPATCH(FUNCTION)())>{ \
      HWY_CHOOSE_FALLBACK(FUNCTION), HWY_CHOOSE_NEON(FUNCTION),       \
      HWY_CHOOSE_SSE4(FUNCTION), HWY_CHOOSE_AVX2(FUNCTION),           \
      HWY_CHOOSE_AVX3(FUNCTION)})

template <typename Kernel>
Kernel ChosenKernel(const KernelTable<Kernel>& table) {
  return table[static_cast<int>(ChosenCpuTarget())]();
}

// Returns the kernel of the chosen target or, for rows narrower than its
// vectors, of the next lower target with at most `width` lanes.
template <typename Kernel>
Kernel ChosenKernel(const KernelTable<Kernel>& table, int64_t width) {
  for (const CpuTarget target : SupportedCpuTargets()) {
    if (target > ChosenCpuTarget()) continue;
    const Kernel kernel = table[static_cast<int>(target)]();
    if (kernel.lanes <= width) return kernel;
  }
  return table[static_cast<int>(CpuTarget::kBaseline)]();
}

}  // namespace convlab

#endif  // KERNELS_SIMD_CPU_TARGET_H_
