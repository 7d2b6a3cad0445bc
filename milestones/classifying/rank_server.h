// Rank 0's side of a run on several ranks: deals pieces to the workers of the
// others, as if they were its own.
#ifndef MILESTONES_CLASSIFYING_RANK_SERVER_H_
#define MILESTONES_CLASSIFYING_RANK_SERVER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "common/parallel/joining_threads.h"
#include "common/ranks/ranks.h"
#include "common/record/classify_record.h"
#include "milestones/classifying/deal.h"
#include "milestones/classifying/rank_messages.h"
#include "milestones/classifying/rank_slots.h"

namespace convlab {

struct RankServerOptions {
  int classes = 0;
  bool logits = false;  // they are asked for
  int64_t image_bytes = 0;
  bool read_each = false;            // the ranks read their pieces themselves
  int readers = 1;                   // threads that read and send
  const RankSlots* slots = nullptr;  // where ranks of this host have any
};

class RankServer {
 public:
  // `ranks`, which have not been started, and the deal must outlive it.
  RankServer(Ranks& ranks, Deal& deal, const RankServerOptions& options);
  ~RankServer();

  // Waits until all workers of the others are ready, or lost.
  void WaitReady();
  // Begins to deal.
  void Begin();
  // Waits for the others' shares, when the deal has ended, and ends the run for
  // them. Those of lost ranks are left out.
  std::vector<ClassifyShare> End();
  // Whether a rank was lost as a process, so that the ranks cannot Leave.
  bool lost_any() const;

 private:
  using WorkerOfRank = std::pair<int, int>;  // rank, worker
  struct Wish {
    int rank;
    RankTake take;
  };

  void Receive(const RankMessage& message);
  absl::Status ReceiveAnswers(const RankMessage& message);
  absl::Status ReceiveTake(const RankMessage& message);
  absl::Status ReceiveText(const RankMessage& message);
  void Lose(int rank, const absl::Status& why);
  void Serve();
  int Number(const WorkerOfRank& worker);
  void SendEnd(RunEnd end);

  Ranks& ranks_;
  Deal& deal_;
  const RankServerOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<WorkerOfRank, int> numbers_;  // in the deal
  std::deque<Wish> wanting_;             // a piece each
  std::set<int> ready_, finished_, lost_;
  std::vector<ClassifyShare> shares_;
  bool ended_ = false, told_end_ = false;
  JoiningThreads threads_;
};

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_RANK_SERVER_H_
