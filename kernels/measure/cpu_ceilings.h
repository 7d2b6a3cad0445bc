// What the CPU's cores do at best, by all workers at once.
#ifndef KERNELS_MEASURE_CPU_CEILINGS_H_
#define KERNELS_MEASURE_CPU_CEILINGS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/parallel/parallel.h"

namespace convlab {

// The widest fused multiply-adds that the processor has, and how it is asked:
// "AVX-512", "AVX2", or "128 bits" for what else there is.
std::string WidestFma();

// Float32 operations of fused multiply-adds in registers: for each worker so
// many rounds of kFmaRoundFlops, of which a faster one does more.
inline constexpr int64_t kFmaRoundFlops = 768;
void RunFma(Workers& workers, int64_t rounds);

// The triad a[i] = b[i] + s * c[i] of float32 over arrays larger than any
// cache. Stores go past the cache where the processor can do that, so that
// bytes() are all that move.
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
