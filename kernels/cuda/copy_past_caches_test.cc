#include "kernels/cuda/copy_past_caches.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace convlab::cuda {
namespace {

TEST(CopyPastCaches, CopiesAllBytesAndNoMore) {
  constexpr int64_t kMost = 100000, kAround = 64;
  std::vector<uint8_t> from(kMost + kAround);
  for (size_t i = 0; i < from.size(); ++i) {
    from[i] = static_cast<uint8_t>(i * 2654435761U >> 24);
  }
  constexpr uint8_t kUntouched = 77;
  for (const int64_t bytes :
       {int64_t{0}, int64_t{1}, int64_t{784}, int64_t{16383}, int64_t{16384},
        int64_t{16385}, int64_t{78400}, kMost}) {
    for (const int64_t begin : {0, 1, 15, 16, 33}) {
      for (const int64_t to_begin : {0, 1, 8, 17}) {
        SCOPED_TRACE(::testing::Message()
                     << bytes << " bytes from " << begin << " to " << to_begin);
        std::vector<uint8_t> to(kMost + kAround, kUntouched);
        CopyPastCaches(from.data() + begin, bytes, to.data() + to_begin);
        std::vector<uint8_t> expected(kMost + kAround, kUntouched);
        std::copy_n(from.begin() + begin, bytes, expected.begin() + to_begin);
        ASSERT_EQ(to, expected);
      }
    }
  }
}

}  // namespace
}  // namespace convlab::cuda
