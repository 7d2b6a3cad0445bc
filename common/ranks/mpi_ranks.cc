// Open MPI behind ranks.h. One thread sends and receives: it starts what is
// queued, looks for what has come, and sleeps where there is nothing to do, so
// that it leaves the cores to those who compute. None of its calls waits for
// another rank, which may be dead. What joins, MPI_Bcast and MPI_Finalize do,
// before it begins and when it has ended.
#include "common/ranks/mpi_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/ranks/open_mpi.h"
#include "common/status/status.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

// How often a rank is heard of.
constexpr std::chrono::milliseconds kBeat(500);

// How long a rank may be silent. A machine with more to do than cores wakes a
// thread late.
absl::StatusOr<std::chrono::seconds> Silence() {
  constexpr std::chrono::seconds kDefault(8);
  const char* const text = std::getenv("CONVLAB_SILENCE");
  if (text == nullptr) return kDefault;
  int seconds = 0;
  if (!absl::SimpleAtoi(text, &seconds) || seconds < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "CONVLAB_SILENCE is '", text, "', expected seconds from 1"));
  }
  return std::chrono::seconds(seconds);
}

// Between two looks for messages: longer and longer where there are none, since
// every look takes time from those who compute.
constexpr std::chrono::microseconds kShortSleep(100), kLongSleep(2000);
// From this size on a message goes in parts, for each of which both sides have
// to look. To look all the time would take cores from those who read.
constexpr size_t kLarge = 64 << 10;
constexpr std::chrono::microseconds kNap(20);
// For the messages that are queued at the end.
constexpr std::chrono::milliseconds kLastWords(1000);

constexpr char kCannotSend[] = "nothing can be sent to it";
constexpr char kCannotReceive[] = "nothing can be received from it";

constexpr int kBeatKind = 0;
constexpr size_t kHostBytes = 256, kProgramBytes = 64;

class MpiRanks : public Ranks {
 public:
  MpiRanks(const Mpi& mpi, int rank, std::vector<RankPlace> places,
           std::chrono::seconds silence)
      : Ranks(rank, std::move(places)),
        mpi_(mpi),
        silence_(silence),
        heard_(size(), Clock::now()),
        watched_(size()) {
    for (int i = 0; i < size(); ++i) {
      watched_[i] = i != rank && (rank == 0 || i == 0);
    }
  }

  ~MpiRanks() override { MpiRanks::Stop(); }

  absl::Status Broadcast(std::string& bytes) override {
    // A count is an int.
    constexpr int64_t kMost = 1 << 30;
    int64_t count = static_cast<int64_t>(bytes.size());
    RETURN_IF_ERROR(MpiStatus(
        mpi_, mpi_.bcast(&count, sizeof(count), mpi_.byte, 0, mpi_.world),
        "MPI_Bcast"));
    bytes.resize(count);
    for (int64_t i = 0; i < count; i += kMost) {
      RETURN_IF_ERROR(MpiStatus(
          mpi_,
          mpi_.bcast(&bytes[i], static_cast<int>(std::min(kMost, count - i)),
                     mpi_.byte, 0, mpi_.world),
          "MPI_Bcast"));
    }
    return absl::OkStatus();
  }

  void Start(Receive receive, Lost lost) override {
    receive_ = std::move(receive);
    lost_ = std::move(lost);
    for (Clock::time_point& time : heard_) time = Clock::now();
    thread_ = std::thread([this] { Exchange(); });
  }

  void Send(int to, int kind, std::string bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    queued_.push_back({to, kind, std::move(bytes)});
    to_send_.notify_one();
  }

  void Release(int rank) override { watched_[rank] = false; }

  void Stop() override {
    deadline_ = Clock::now() + kLastWords;
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Leave() override {
    Stop();
    return MpiStatus(mpi_, mpi_.finalize(), "MPI_Finalize");
  }

  [[noreturn]] void Abandon(int status) override {
    Stop();
    // MPI_Finalize would wait for the ranks that are lost.
    if (status != 0) mpi_.abort(mpi_.world, status);
    _exit(status);
  }

 private:
  struct Outgoing {
    int to, kind;
    std::string bytes;
    MPI_Request request = {};
  };
  struct Incoming {
    RankMessage message;
    MPI_Request request = {};
  };

  // The thread's work, until Stop was called and all is sent.
  void Exchange() {
    Clock::time_point beat = Clock::now();
    std::chrono::microseconds sleep = kShortSleep;
    for (;;) {
      bool busy = StartSending();
      busy = EndSending() || busy;
      busy = StartReceiving() || busy;
      busy = EndReceiving() || busy;
      const Clock::time_point now = Clock::now();
      if (now >= beat) {
        beat = now + kBeat;
        for (int i = 0; i < size(); ++i) {
          if (watched_[i]) Send(i, kBeatKind, "");
        }
        FindLost(now);
      }
      if (stopping_ &&
          ((sending_.empty() && AllQueuedSent()) || now > deadline_.load())) {
        return;
      }
      // What is on its way may need the library's help.
      const bool idle = !busy && sending_.empty() && receiving_.empty();
      sleep = idle              ? std::min(2 * sleep, kLongSleep)
              : LargeOnTheWay() ? kNap
                                : kShortSleep;
      if (busy) continue;
      std::unique_lock<std::mutex> lock(mutex_);
      to_send_.wait_for(lock, sleep, [&] { return !queued_.empty(); });
    }
  }

  bool LargeOnTheWay() const {
    const auto large = [](const std::string& bytes) {
      return bytes.size() >= kLarge;
    };
    return std::any_of(sending_.begin(), sending_.end(),
                       [&](const Outgoing& one) { return large(one.bytes); }) ||
           std::any_of(
               receiving_.begin(), receiving_.end(),
               [&](const Incoming& one) { return large(one.message.bytes); });
  }

  bool AllQueuedSent() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return queued_.empty();
  }

  bool StartSending() {
    std::deque<Outgoing> queued;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      queued.swap(queued_);
    }
    for (Outgoing& one : queued) {
      if (gone_.count(one.to) > 0) continue;
      sending_.push_back(std::move(one));
      Outgoing& sent = sending_.back();
      if (mpi_.isend(sent.bytes.data(), static_cast<int>(sent.bytes.size()),
                     mpi_.byte, sent.to, sent.kind, mpi_.world,
                     &sent.request) != MPI_SUCCESS) {
        LoseRank(sent.to, kCannotSend);
        sending_.pop_back();
      }
    }
    return !queued.empty();
  }

  bool EndSending() {
    bool any = false;
    for (auto one = sending_.begin(); one != sending_.end();) {
      int done = 0;
      const int code = mpi_.test(&one->request, &done, MPI_STATUS_IGNORE);
      if (gone_.count(one->to) > 0) {
        // The library may still read it.
        abandoned_.splice(abandoned_.end(), sending_, one++);
      } else if (code != MPI_SUCCESS) {
        LoseRank(one->to, kCannotSend);
      } else if (done != 0) {
        one = sending_.erase(one);
        any = true;
      } else {
        ++one;
      }
    }
    return any;
  }

  bool StartReceiving() {
    bool any = false;
    for (;;) {
      int there = 0, count = 0;
      MPI_Status status;
      if (mpi_.iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, mpi_.world, &there,
                      &status) != MPI_SUCCESS ||
          there == 0) {
        return any;
      }
      const int from = status.MPI_SOURCE;
      if (mpi_.get_count(&status, mpi_.byte, &count) != MPI_SUCCESS ||
          count < 0) {
        LoseRank(from, kCannotReceive);
        return any;
      }
      // Its beats, too, while an earlier message of many bytes is on its way.
      heard_[from] = Clock::now();
      receiving_.emplace_back();
      Incoming& one = receiving_.back();
      one.message.from = from;
      one.message.kind = status.MPI_TAG;
      one.message.bytes.resize(count);
      if (mpi_.irecv(one.message.bytes.data(), count, mpi_.byte, from,
                     status.MPI_TAG, mpi_.world, &one.request) != MPI_SUCCESS) {
        receiving_.pop_back();
        // The message stays, and is probed again: not at once.
        LoseRank(from, kCannotReceive);
        return any;
      }
      any = true;
    }
  }

  // A rank's messages are handed on in their order: a later one may have come
  // as a whole before an earlier, larger one.
  bool EndReceiving() {
    bool any = false;
    std::vector<bool> waits(size(), false);
    for (auto one = receiving_.begin(); one != receiving_.end();) {
      const int from = one->message.from;
      int done = 0;
      if (gone_.count(from) > 0) {
        abandoned_receiving_.splice(abandoned_receiving_.end(), receiving_,
                                    one++);
        continue;
      }
      if (!waits[from] &&
          mpi_.test(&one->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        LoseRank(from, kCannotReceive);
        continue;
      }
      if (done == 0) {
        waits[from] = true;
        ++one;
        continue;
      }
      heard_[from] = Clock::now();
      any = true;
      RankMessage message = std::move(one->message);
      one = receiving_.erase(one);
      if (message.kind != kBeatKind) receive_(std::move(message));
    }
    return any;
  }

  void FindLost(Clock::time_point now) {
    for (int i = 0; i < size(); ++i) {
      if (!watched_[i]) continue;
      if (HasEnded(i)) {
        LoseRank(i,
                 absl::StrCat("its process ", place(i).process, " has ended"));
      } else if (now - heard_[i] > silence_) {
        LoseRank(i, absl::StrCat("its process ", place(i).process,
                                 " has not been heard of for ",
                                 silence_.count(), " s"));
      }
    }
  }

  void LoseRank(int rank, const std::string& why) {
    if (!gone_.insert(rank).second) return;
    const bool watched = watched_[rank].exchange(false);
    if (watched) lost_(rank, Annotate(absl::InternalError(why), Name(rank)));
  }

  const Mpi mpi_;
  const std::chrono::seconds silence_;
  Receive receive_;
  Lost lost_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<Clock::time_point> deadline_{};

  std::mutex mutex_;
  std::condition_variable to_send_;
  std::deque<Outgoing> queued_;

  // Of the thread alone.
  std::list<Outgoing> sending_, abandoned_;
  std::list<Incoming> receiving_, abandoned_receiving_;
  std::vector<Clock::time_point> heard_;
  std::set<int> gone_;
  std::vector<std::atomic<bool>> watched_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Ranks>> JoinMpi(const RankPlace& place) {
  ASSIGN_OR_RETURN(const Mpi mpi, OpenMpi());
  return JoinMpi(mpi, place);
}

absl::StatusOr<std::unique_ptr<Ranks>> JoinMpi(const Mpi& mpi,
                                               const RankPlace& place) {
  // Before MPI_Init, after which all ranks would have to end together.
  ASSIGN_OR_RETURN(const std::chrono::seconds silence, Silence());
  int provided = 0, rank = 0, size = 0;
  RETURN_IF_ERROR(MpiStatus(
      mpi, mpi.init(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
      "MPI_Init_thread"));
  if (provided < MPI_THREAD_SERIALIZED) {
    return absl::UnavailableError(
        "this Open MPI cannot be called from several threads in turn");
  }
  RETURN_IF_ERROR(MpiStatus(mpi,
                            mpi.set_errhandler(mpi.world, mpi.errors_return),
                            "MPI_Comm_set_errhandler"));
  RETURN_IF_ERROR(MpiStatus(mpi, mpi.rank(mpi.world, &rank), "MPI_Comm_rank"));
  RETURN_IF_ERROR(MpiStatus(mpi, mpi.size(mpi.world, &size), "MPI_Comm_size"));
  struct Place {
    int64_t process;
    uint64_t process_space;
    char host[kHostBytes];
    char program[kProgramBytes];
  };
  Place mine = {place.process, place.process_space, "", ""};
  std::strncpy(mine.host, place.host.c_str(), kHostBytes - 1);
  std::strncpy(mine.program, place.program.c_str(), kProgramBytes - 1);
  std::vector<Place> all(size);
  RETURN_IF_ERROR(
      MpiStatus(mpi,
                mpi.allgather(&mine, sizeof(mine), mpi.byte, all.data(),
                              sizeof(mine), mpi.byte, mpi.world),
                "MPI_Allgather"));
  std::vector<RankPlace> places;
  places.reserve(size);
  for (const Place& one : all) {
    places.push_back({one.host, one.process, one.process_space, one.program});
  }
  return std::make_unique<MpiRanks>(mpi, rank, std::move(places), silence);
}

}  // namespace convlab
