#include "kernels/measure/cpu_ceilings.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "common/math/rounding.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace convlab {
namespace {

// Does kFmaRoundFlops / 2 multiply-adds per round in `Sums` independent GCC
// vectors; the target of the calling function determines the instructions.
template <typename Vector, int Sums>
__attribute__((always_inline)) inline void FmaLoop(int64_t rounds) {
  constexpr int kLanes = sizeof(Vector) / sizeof(float);
  constexpr int64_t kStepFlops = int64_t{2} * kLanes * Sums;
  constexpr int kSteps = kFmaRoundFlops / kStepFlops;
  static_assert(kFmaRoundFlops % kStepFlops == 0);
  Vector sums[Sums], factor = {}, term = {};
  factor += 0.5f;
  term += 0.5f;
  // Unrolled, so that the sums stay in registers.
#pragma GCC unroll 32
  for (int i = 0; i < Sums; ++i) sums[i] = term + static_cast<float>(i);
  // Values that the compiler cannot know.
  asm volatile("" : "+m"(factor), "+m"(term));
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 32
    for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 32
      for (int i = 0; i < Sums; ++i) sums[i] = sums[i] * factor + term;
    }
  }
#pragma GCC unroll 32
  for (int i = 1; i < Sums; ++i) sums[0] += sums[i];
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += sums[0][i];
  // As if it were used, so that the compiler cannot remove the loop.
  asm volatile("" : : "m"(sum));
}

using Float4 = float __attribute__((vector_size(16)));

#if defined(__x86_64__)
using Float8 = float __attribute__((vector_size(32)));
using Float16 = float __attribute__((vector_size(64)));

// Uses as many sums as leave registers for the factors, of which AVX-512 has 32
// and AVX2 16.
__attribute__((target("avx512f,fma"), optimize("fp-contract=fast"))) void
FmaAvx512(int64_t rounds) {
  FmaLoop<Float16, 24>(rounds);
}

__attribute__((target("avx2,fma"), optimize("fp-contract=fast"))) void FmaAvx2(
    int64_t rounds) {
  FmaLoop<Float8, 12>(rounds);
}
#endif

void FmaBaseline(int64_t rounds) { FmaLoop<Float4, 12>(rounds); }

struct FmaChoice {
  const char* name;
  void (*run)(int64_t rounds);
};

FmaChoice ChooseFma() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {"AVX-512", FmaAvx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {"AVX2", FmaAvx2};
  }
#endif
  return {"128 bits", FmaBaseline};
}

// Three of these are larger than the caches of any processor.
constexpr int64_t kTriadFloats = int64_t{1} << 25;

void TriadPiece(const float* b, const float* c, float* a, int64_t count) {
  constexpr float kFactor = 3;
#if defined(__x86_64__)
  const __m128 factor = _mm_set1_ps(kFactor);
  for (int64_t i = 0; i < count; i += 4) {
    _mm_stream_ps(a + i, _mm_add_ps(_mm_load_ps(b + i),
                                    _mm_mul_ps(factor, _mm_load_ps(c + i))));
  }
  _mm_sfence();
#else
  for (int64_t i = 0; i < count; ++i) a[i] = b[i] + kFactor * c[i];
#endif
}

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};
using Array = std::unique_ptr<float[], Free>;

Array Allocate() {
  Array array(static_cast<float*>(
      std::aligned_alloc(4096, kTriadFloats * sizeof(float))));
  if (array == nullptr) throw std::bad_alloc();
  return array;
}

}  // namespace

std::string WidestFma() { return ChooseFma().name; }

void RunFma(Workers& workers, int64_t rounds) {
  const FmaChoice choice = ChooseFma();
  // Distributed in pieces, as work is, so that a core that is slowed down by
  // something else does not keep the others waiting.
  constexpr int64_t kPieces = 64;  // of a worker
  workers.For(
      rounds * workers.count(), CeilDivide(rounds, kPieces),
      [&](int, int64_t begin, int64_t end) { choice.run(end - begin); });
}

struct Triad::Arrays {
  Array a = Allocate(), b = Allocate(), c = Allocate();
};

Triad::Triad(Workers& workers)
    : workers_(workers), arrays_(std::make_unique<Arrays>()) {
  std::fill_n(arrays_->a.get(), kTriadFloats, 0.0f);
  std::fill_n(arrays_->b.get(), kTriadFloats, 1.0f);
  std::fill_n(arrays_->c.get(), kTriadFloats, 2.0f);
}

Triad::~Triad() = default;

void Triad::Run() {
  // Pieces are whole pages.
  constexpr int64_t kPieces = 256;
  constexpr int64_t kFloats = kTriadFloats / kPieces;
  workers_.For(kPieces, 1, [&](int, int64_t begin, int64_t end) {
    const int64_t first = begin * kFloats;
    TriadPiece(arrays_->b.get() + first, arrays_->c.get() + first,
               arrays_->a.get() + first, (end - begin) * kFloats);
  });
}

int64_t Triad::bytes() const {
  return 3 * kTriadFloats * static_cast<int64_t>(sizeof(float));
}

}  // namespace convlab
