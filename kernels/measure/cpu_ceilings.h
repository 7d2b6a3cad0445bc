// The ceilings of the CPU, measured with all workers at once.
#ifndef KERNELS_MEASURE_CPU_CEILINGS_H_
#define KERNELS_MEASURE_CPU_CEILINGS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/parallel/parallel.h"

namespace convlab {

// The widest fused multiply-adds of the processor: "AVX-512", "AVX2", or "128
// bits" for anything else.
std::string WidestFma();

// Runs fused multiply-adds in float32 registers: `rounds` times the number of
// workers rounds of kFmaRoundFlops, of which faster workers do more.
inline constexpr int64_t kFmaRoundFlops = 768;
void RunFma(Workers& workers, int64_t rounds);

// The triad a[i] = b[i] + s * c[i] of float32 over arrays larger than any
// cache. Stores bypass the cache where the processor supports it, so that no
// other bytes than bytes() move.
class Triad {
 public:
  // Throws std::bad_alloc if the system refuses the memory.
  explicit Triad(Workers& workers);
  ~Triad();

  void Run();
  int64_t bytes() const;  // of one run

 private:
  struct Arrays;
  Workers& workers_;
  std::unique_ptr<Arrays> arrays_;
};

}  // namespace convlab

#endif  // KERNELS_MEASURE_CPU_CEILINGS_H_
