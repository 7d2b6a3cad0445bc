// Ranks that send nothing: that of a process which was started alone, and those
// of tests that ask only who the ranks are.
#ifndef COMMON_RANKS_QUIET_RANKS_H_
#define COMMON_RANKS_QUIET_RANKS_H_

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/ranks/ranks.h"

namespace convlab {

class QuietRanks : public Ranks {
 public:
  QuietRanks(int rank, std::vector<RankPlace> places)
      : Ranks(rank, std::move(places)) {}
  absl::Status Broadcast(std::string&) override { return absl::OkStatus(); }
  void Start(Receive, Lost) override {}
  void Send(int, int, std::string) override {}
  void Release(int) override {}
  void Stop() override {}
  absl::Status Leave() override { return absl::OkStatus(); }
  [[noreturn]] void Abandon(int status) override { _exit(status); }
};

}  // namespace convlab

#endif  // COMMON_RANKS_QUIET_RANKS_H_
