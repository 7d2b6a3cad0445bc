#include "common/parallel/joining_threads.h"

#include <atomic>
#include <chrono>
#include <system_error>

#include "gtest/gtest.h"

namespace convlab {
namespace {

TEST(JoiningThreads, ThoseThatWereStartedEndBeforeAnErrorIsCaught) {
  std::atomic<int> ended{0};
  const auto start = [&] {
    JoiningThreads threads;
    for (int i = 0; i < 2; ++i) {
      threads.Start([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        ++ended;
      });
    }
    throw std::system_error(
        std::make_error_code(std::errc::resource_unavailable_try_again));
  };
  EXPECT_THROW(start(), std::system_error);
  EXPECT_EQ(ended, 2);
}

TEST(JoiningThreads, AreJoinedOnce) {
  std::atomic<int> ended{0};
  JoiningThreads threads;
  threads.Start([&] { ++ended; });
  threads.Join();
  EXPECT_EQ(ended, 1);
  threads.Start([&] { ++ended; });
  threads.Join();
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace convlab
