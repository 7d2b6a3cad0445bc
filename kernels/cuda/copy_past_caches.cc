#include "kernels/cuda/copy_past_caches.h"

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace convlab::cuda {

void CopyPastCaches(const void* from, int64_t bytes, void* to) {
#ifdef __SSE2__
  constexpr int64_t kFewestBytes = 16 << 10;
  if (bytes < kFewestBytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  constexpr int64_t kVector = sizeof(__m128i), kLine = 64;
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  // The stores are of vectors that begin at multiples of their size.
  const int64_t ahead = std::min(
      bytes, static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % kVector));
  std::memcpy(target, source, ahead);
  int64_t i = ahead;
  for (; i + kLine <= bytes; i += kLine) {
    for (int64_t j = i; j < i + kLine; j += kVector) {
      _mm_stream_si128(
          reinterpret_cast<__m128i*>(target + j),
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + j)));
    }
  }
  std::memcpy(target + i, source + i, bytes - i);
  // They are in no order with other stores, such as those that tell the GPU to
  // begin.
  _mm_sfence();
#else
  std::memcpy(to, from, bytes);
#endif
}

}  // namespace convlab::cuda
