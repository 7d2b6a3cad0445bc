// What becomes of the errors of MPI's functions, by functions that fail.
#include "common/ranks/mpi_ranks.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <utility>

#include "common/ranks/open_mpi.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

// What the functions do; those of a library know nothing else. This process is
// rank 0 of two, and the other one has sent a message.
struct Fake {
  bool handler_fails, rank_fails, size_fails, count_fails, receive_fails,
      test_fails;
  bool taken;  // the message
  // Messages go on coming, of which none is ever there as a whole.
  bool parts_only;
};
Fake fake;
// Of those the last one; without them the rank has fallen silent.
std::atomic<bool> falls_silent;

// Requests are told apart by their addresses.
int sent, received;

int Code(bool fails) { return fails ? MPI_ERR_OTHER : MPI_SUCCESS; }

int FakeInit(int*, char***, int, int* provided) {
  *provided = MPI_THREAD_SERIALIZED;
  return MPI_SUCCESS;
}
int FakeHandler(MPI_Comm, MPI_Errhandler) { return Code(fake.handler_fails); }
int FakeRank(MPI_Comm, int* rank) {
  *rank = 0;
  return Code(fake.rank_fails);
}
int FakeSize(MPI_Comm, int* size) {
  *size = 2;
  return Code(fake.size_fails);
}
int FakeAllgather(const void* mine, int bytes, MPI_Datatype, void* all, int,
                  MPI_Datatype, MPI_Comm) {
  for (int i = 0; i < 2; ++i) {
    std::memcpy(static_cast<char*>(all) + i * bytes, mine, bytes);
  }
  return MPI_SUCCESS;
}
int FakeIsend(const void*, int, MPI_Datatype, int, int, MPI_Comm,
              MPI_Request* request) {
  *request = reinterpret_cast<MPI_Request>(&sent);
  return MPI_SUCCESS;
}
int FakeIprobe(int, int, MPI_Comm, int* there, MPI_Status* status) {
  *there = fake.taken ? 0 : 1;
  if (fake.parts_only) {
    static auto last = std::chrono::steady_clock::now();
    const auto now = std::chrono::steady_clock::now();
    *there = !falls_silent && now - last > std::chrono::milliseconds(200);
    if (*there != 0) last = now;
  }
  status->MPI_SOURCE = 1;
  status->MPI_TAG = 1;
  return MPI_SUCCESS;
}
int FakeGetCount(const MPI_Status*, MPI_Datatype, int* count) {
  *count = fake.count_fails ? MPI_UNDEFINED : 4;
  return MPI_SUCCESS;
}
int FakeIrecv(void*, int, MPI_Datatype, int, int, MPI_Comm,
              MPI_Request* request) {
  *request = reinterpret_cast<MPI_Request>(&received);
  fake.taken = !fake.receive_fails;
  return Code(fake.receive_fails);
}
int FakeTest(MPI_Request* request, int* done, MPI_Status*) {
  const bool is_received = *request == reinterpret_cast<MPI_Request>(&received);
  *done = is_received && fake.parts_only ? 0 : 1;
  return Code(fake.test_fails && is_received);
}
int FakeErrorString(int, char* text, int* length) {
  std::strcpy(text, "it is broken");
  *length = static_cast<int>(std::strlen(text));
  return MPI_SUCCESS;
}

Mpi FakeMpi() {
  Mpi mpi = {};
  mpi.init = FakeInit;
  mpi.set_errhandler = FakeHandler;
  mpi.rank = FakeRank;
  mpi.size = FakeSize;
  mpi.allgather = FakeAllgather;
  mpi.isend = FakeIsend;
  mpi.iprobe = FakeIprobe;
  mpi.get_count = FakeGetCount;
  mpi.irecv = FakeIrecv;
  mpi.test = FakeTest;
  mpi.error_string = FakeErrorString;
  return mpi;
}

TEST(MpiRanks, WhatFailsWhileJoiningIsTold) {
  for (const auto& [which, call] :
       {std::pair(&Fake::handler_fails, "MPI_Comm_set_errhandler"),
        {&Fake::rank_fails, "MPI_Comm_rank"},
        {&Fake::size_fails, "MPI_Comm_size"}}) {
    fake = {};
    fake.*which = true;
    const auto ranks = JoinMpi(FakeMpi(), Ranks::ThisPlace());
    ASSERT_FALSE(ranks.ok());
    EXPECT_EQ(ranks.status().message(), std::string(call) + ": it is broken");
  }
}

// At once, not when nothing has been heard of it for seconds.
TEST(MpiRanks, ARankFromWhichNothingCanBeReceivedIsLost) {
  for (bool Fake::*const which :
       {&Fake::count_fails, &Fake::receive_fails, &Fake::test_fails}) {
    fake = {};
    fake.*which = true;
    auto ranks = JoinMpi(FakeMpi(), Ranks::ThisPlace());
    ASSERT_TRUE(ranks.ok()) << ranks.status();
    std::promise<std::string> lost;
    (*ranks)->Start([](const RankMessage&) {},
                    [&](int rank, const absl::Status& why) {
                      EXPECT_EQ(rank, 1);
                      lost.set_value(std::string(why.message()));
                    });
    std::future<std::string> why = lost.get_future();
    ASSERT_EQ(why.wait_for(std::chrono::seconds(4)), std::future_status::ready);
    EXPECT_THAT(why.get(), HasSubstr("nothing can be received from it"));
    (*ranks)->Stop();
  }
}

// A large message is long on its way, and what comes behind it waits for it;
// yet the rank is there.
TEST(MpiRanks, ARankWhoseMessageIsLongOnItsWayIsNotLost) {
  fake = {};
  fake.parts_only = true;
  falls_silent = false;
  ASSERT_EQ(setenv("CONVLAB_SILENCE", "1", 1), 0);
  auto ranks = JoinMpi(FakeMpi(), Ranks::ThisPlace());
  unsetenv("CONVLAB_SILENCE");
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  std::promise<std::string> lost;
  (*ranks)->Start([](const RankMessage&) {},
                  [&](int, const absl::Status& why) {
                    lost.set_value(std::string(why.message()));
                  });
  std::future<std::string> why = lost.get_future();
  EXPECT_EQ(why.wait_for(std::chrono::seconds(3)), std::future_status::timeout);
  falls_silent = true;
  ASSERT_EQ(why.wait_for(std::chrono::seconds(4)), std::future_status::ready);
  EXPECT_THAT(why.get(), HasSubstr("has not been heard of for 1 s"));
  (*ranks)->Stop();
}

}  // namespace
}  // namespace convlab
