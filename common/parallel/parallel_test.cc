#include "common/parallel/parallel.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "common/parallel/loop_workers.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

TEST(Workers, CoverEveryItemOnce) {
  for (const int count : {1, 2, 5}) {
    Workers workers(count);
    for (const int64_t items : {0, 1, 7, 1000}) {
      for (const int64_t grain : {1, 3, 2000}) {
        std::vector<std::atomic<int>> seen(items);
        workers.For(items, grain, [&](int worker, int64_t begin, int64_t end) {
          EXPECT_GE(worker, 0);
          EXPECT_LT(worker, count);
          EXPECT_LE(end - begin, grain);
          for (int64_t i = begin; i < end; ++i) ++seen[i];
        });
        for (const auto& times : seen) EXPECT_EQ(times, 1);
      }
    }
  }
}

TEST(Workers, OneWorkerNeverRunsTwiceAtOnce) {
  Workers workers(4);
  std::vector<std::atomic<int>> running(4);
  workers.For(10000, 1, [&](int worker, int64_t, int64_t) {
    EXPECT_EQ(running[worker]++, 0);
    --running[worker];
  });
}

TEST(Workers, ResultsAreVisibleAfterwards) {
  Workers workers(3);
  std::vector<int64_t> squares(5000);
  for (int round = 1; round <= 20; ++round) {
    workers.For(5000, 16, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) squares[i] = round * i * i;
    });
    for (int64_t i = 0; i < 5000; ++i) ASSERT_EQ(squares[i], round * i * i);
  }
}

TEST(Workers, LoopsAreCountedByThoseTheyHad) {
  TakeLoopWorkers();
  EXPECT_EQ(TakeLoopWorkers(), 1);
  Workers workers(4);
  const auto run = [&](int64_t items, int64_t grain) {
    workers.For(items, grain, [](int, int64_t, int64_t) {});
  };
  run(100, 10);
  run(1, 1);
  EXPECT_EQ(TakeLoopWorkers(), 4);
  run(3, 1);
  EXPECT_EQ(TakeLoopWorkers(), 3);
  run(100, 50);
  EXPECT_EQ(TakeLoopWorkers(), 2);
  run(100, 100);
  EXPECT_EQ(TakeLoopWorkers(), 1);
}

TEST(Workers, AvailableAreTheCoresOfTheAffinityMask) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  EXPECT_EQ(Workers::Available(), CPU_COUNT(&all));
  int core = 0;
  while (!CPU_ISSET(core, &all)) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(Workers::Available(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
}

TEST(Workers, WhatWorkThrowsReachesTheCaller) {
  for (const int count : {1, 4}) {
    Workers workers(count);
    EXPECT_THROW(workers.For(1000, 1,
                             [](int, int64_t begin, int64_t) {
                               if (begin >= 5) throw std::bad_alloc();
                             }),
                 std::bad_alloc);
    // The workers can be used again.
    std::atomic<int64_t> sum{0};
    workers.For(10, 1, [&](int, int64_t begin, int64_t) { sum += begin; });
    EXPECT_EQ(sum, 45);
  }
}

TEST(Workers, WorkInTheChildOfAFork) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer refuses threads after a fork";
#endif
  auto workers = std::make_unique<Workers>(3);
  const auto sum = [&] {
    std::atomic<int64_t> all{0};
    workers->For(100, 1, [&](int, int64_t begin, int64_t) { all += begin; });
    return all.load();
  };
  EXPECT_EQ(sum(), 4950);
  for (const bool used : {true, false}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);  // instead of a test that hangs
      const bool right = !used || (sum() == 4950 && sum() == 4950);
      workers.reset();
      _exit(right ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(sum(), 4950);
}

// Exits with 0 if that many workers are refused their memory by an exception.
[[noreturn]] void MakeWorkersWithoutMemory(int count) {
  long pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) std::exit(3);
    std::fclose(file);
  }
  // The workers need 200 MB, and an arena of malloc has at most 64.
  const rlim_t bytes = pages * 4096 + (64 << 10);
  const struct rlimit limit = {bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::exit(3);
  try {
    Workers workers(count);
  } catch (const std::bad_alloc&) {
    std::exit(0);
  }
  std::exit(1);
}

TEST(Workers, WithoutMemoryForTheThreadsThereAreNone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's own memory would be refused, too";
#endif
  EXPECT_EXIT(MakeWorkersWithoutMemory(5000), ::testing::ExitedWithCode(0), "");
}

TEST(Workers, NoFewerThanOne) {
  EXPECT_GE(Workers::Available(), 1);
  EXPECT_EQ(Workers(0).count(), 1);
}

}  // namespace
}  // namespace convlab
