#include "kernels/judge/process/shared_tensors.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>

#include "gtest/gtest.h"
#include "kernels/judge/process/fault.h"

namespace {

// How many more threads the system makes; all if negative.
int g_threads_left = -1;
int g_refused = 0;

}  // namespace

// In place of the C library's, for std::thread too.
extern "C" int pthread_create(pthread_t* thread,
                              const pthread_attr_t* attributes,
                              void* (*function)(void*),
                              void* argument) noexcept {
  if (g_threads_left == 0) {
    ++g_refused;
    return EAGAIN;
  }
  if (g_threads_left > 0) --g_threads_left;
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(
      dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, function, argument);
}

namespace convlab {
namespace {

// 128 MiB of output, which several threads touch.
constexpr Problem kLarge = {32, 1, 1028, 1028, 1, 5};

TEST(SharedMemory, WorksWhereTheSystemRefusesThreads) {
  for (const int threads : {0, 1}) {
    SharedMemory memory;
    g_threads_left = threads;
    const absl::Status placed = memory.Place(kLarge);
    g_threads_left = -1;
    ASSERT_TRUE(placed.ok()) << placed;
    EXPECT_EQ(memory.tensors().y.size(), 32u << 20);
    EXPECT_EQ(memory.tensors().y.back(), 0);
  }
  EXPECT_GT(g_refused, 0);
}

TEST(SharedMemory, ChecksNameTheFault) {
  SharedMemory memory;
  ASSERT_TRUE(memory.Place({1, 1, 8, 8, 1, 3}).ok());
  const SharedTensors tensors = memory.tensors();
  memory.Remember();
  EXPECT_TRUE(memory.Check().ok());
  ++tensors.x[3];
  EXPECT_EQ(FaultOf(memory.Check()), Fault::kBrokeRule);
  --tensors.x[3];
  EXPECT_TRUE(memory.Check().ok());
  tensors.y.end()[0] = 0;
  EXPECT_EQ(FaultOf(memory.Check()), Fault::kWroteOutside);
}

}  // namespace
}  // namespace convlab
