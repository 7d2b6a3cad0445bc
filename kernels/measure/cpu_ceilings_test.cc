#include "kernels/measure/cpu_ceilings.h"

#include <chrono>

#include "common/parallel/parallel.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

template <typename Work>
double Seconds(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// A rate that no processor reaches would mean that no work was done.
TEST(CpuCeilings, FmaTakesTimeByTheRound) {
  Workers workers(1);
  RunFma(workers, 1000);
  const double seconds = Seconds([&] { RunFma(workers, 1000000); });
  const double gflops = 1e-3 * kFmaRoundFlops / seconds;
  EXPECT_GT(gflops, 0.1) << WidestFma();
  // Two units of 16 lanes at 8 GHz.
  EXPECT_LT(gflops, 512) << WidestFma();
}

TEST(CpuCeilings, TriadMovesItsBytes) {
  Workers workers(2);
  Triad triad(workers);
  triad.Run();
  EXPECT_EQ(triad.bytes(), int64_t{3} << 27);
  const double gbs = triad.bytes() * 1e-9 / Seconds([&] { triad.Run(); });
  EXPECT_GT(gbs, 0.1);
  EXPECT_LT(gbs, 2000);
}

}  // namespace
}  // namespace convlab
