// Which vector instructions the CPU's kernels use. One program holds code for
// several sets and takes the best that the machine has.
//
// A kernel's file is compiled once per set by Highway's foreach_target.h.
// Highway's own choice at run time stands in a shared library, which a program
// would have to carry with it, so the choice is made here:
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

// From the least to the best. The baseline runs everywhere, one lane at a time.
enum class CpuTarget { kBaseline, kNeon, kSse4, kAvx2, kAvx512 };
constexpr int kCpuTargets = 5;

absl::string_view Name(CpuTarget target);  // "baseline", "neon", ...

// Those that this machine can run, best first; the baseline is always there.
const std::vector<CpuTarget>& SupportedCpuTargets();

// The best supported one, or what ForceCpuTarget chose.
CpuTarget ChosenCpuTarget();

// Makes the kernels that are created from now on use the named set; "auto" is
// the best. InvalidArgument for a name that there is not, Unavailable for one
// that this machine cannot run; both list what it can. Not to be called while
// another thread creates a kernel.
absl::Status ForceCpuTarget(absl::string_view name);

// A function per target that describes the target's kernel; null for targets
// of other processors.
template <typename Kernel>
using KernelTable = std::array<Kernel (*)(), kCpuTargets>;

// Belongs into the part of a file that is compiled once (#if HWY_ONCE), in the
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

// The kernel of the chosen target or, where that has more than `width` lanes,
// of the next lower one that has not: rows that are narrower than a vector.
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
