// The processes of one run that mpirun or srun started: who they are, and
// messages between them. Any of them may die or hang: from Start to Stop
// nothing waits for one for ever, and who is lost is told. Join, Broadcast and
// Leave wait for all, and for one that dies meanwhile as long as MPI does.
//
// Open MPI is opened at run time, and only in a process that was started as
// one of several: a program needs it neither to start nor to run alone.
#ifndef COMMON_RANKS_RANKS_H_
#define COMMON_RANKS_RANKS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace convlab {

struct RankMessage {
  int from = 0;
  int kind = 0;  // the user's, from 1
  std::string bytes;
};

struct RankPlace {
  std::string host;
  int64_t process = 0;  // its number there, and in its process namespace
  // Which namespace that is, the same number for all in it; 0: unknown.
  uint64_t process_space = 0;
  std::string program = {};  // the revision of its build
};

class Ranks {
 public:
  virtual ~Ranks() = default;

  // What joined; a process that was started alone is rank 0 of 1. Unavailable
  // if it was started as one of several, and Open MPI is missing or refuses;
  // InvalidArgument if the environment says something wrong. Once in a process.
  static absl::StatusOr<std::unique_ptr<Ranks>> Join();
  // Of this process.
  static RankPlace ThisPlace();
  // The number of this process's rank by its environment, without joining.
  static int EnvironmentRank();

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(places_.size()); }
  const RankPlace& place(int rank) const { return places_[rank]; }
  // The number of lower ranks on the same host.
  int local_rank() const;
  // InvalidArgument, naming one, unless all ranks are of rank 0's revision:
  // what they send each other has no other check of its form. All find the
  // same.
  absl::Status CheckSamePrograms() const;
  // "rank 2 on node7"; "" in a run of one.
  std::string Name(int rank) const;

  // Gives all ranks the bytes of rank 0. All call it, before Start.
  virtual absl::Status Broadcast(std::string& bytes) = 0;

  // Called in a thread of the ranks' own, and may call Send.
  using Receive = std::function<void(RankMessage message)>;
  using Lost = std::function<void(int rank, const absl::Status& why)>;

  // From here on there are messages. Rank 0 watches all others, and each of
  // them rank 0: one whose process has ended, or of which nothing was heard for
  // some seconds, is lost, which is told once.
  virtual void Start(Receive receive, Lost lost) = 0;
  // Queues a message; what is sent to a lost rank is forgotten.
  virtual void Send(int to, int kind, std::string bytes) = 0;
  // No longer watches a rank, which may end.
  virtual void Release(int rank) = 0;
  // Those whose processes are known to have ended, released or not; for a
  // process that is being ended itself because another one died.
  std::vector<int> FindEnded() const;

  // Ends the messages, when all that was queued is out, or cannot be sent.
  virtual void Stop() = 0;

  // Ends together with the others: all ranks call it, with nobody lost. A run
  // that lost one ends by Abandon.
  virtual absl::Status Leave() = 0;
  // Ends the process at once; with a status other than 0 the others, too.
  [[noreturn]] virtual void Abandon(int status) = 0;

 protected:
  Ranks(int rank, std::vector<RankPlace> places)
      : rank_(rank), places_(std::move(places)) {}

  // Whether the process is known to have ended: it was on this host, and has a
  // number here, which it has not from another container.
  bool HasEnded(int rank) const;

 private:
  const int rank_;
  const std::vector<RankPlace> places_;
};

}  // namespace convlab

#endif  // COMMON_RANKS_RANKS_H_
