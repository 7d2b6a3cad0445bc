// Runs the rungs of the ladder in a process of their own, so that a rung that
// crashes, hangs or leaves the GPU unusable is one failed row and not the end
// of the table.
//
// The process is this program with the same arguments and one more variable in
// its environment. It loads the data once and runs rung after rung; the program
// starts another one behind the rung at which it ended.
#ifndef MILESTONES_RUNG_PROCESS_H_
#define MILESTONES_RUNG_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/record/run_record.h"

namespace convlab {

// In the process that runs rungs: the rungs that it was asked for, and its way
// back.
class RungReporter {
 public:
  // Absent in a program that the user started.
  static std::optional<RungReporter> FromEnvironment();

  // The first rung to run: its index among those of the session.
  size_t first() const { return first_; }

  void Begin(const std::string& variant) const;
  void Progress(double share) const;
  void Note(const std::string& text) const;  // for the user
  // Ends a rung, which classified `images`. The process must end after a rung
  // that failed: the GPU may be unusable.
  void End(const LadderRun& run, int64_t images) const;

 private:
  RungReporter(int fd, size_t first) : fd_(fd), first_(first) {}
  int fd_;
  size_t first_;
};

// In the program that the user started.
struct RungListener {
  std::function<void(const std::string& variant)> begin;
  std::function<void(double)> progress;
  std::function<void(const std::string&)> note;
};

class RungProcess {
 public:
  // Starts `command`, this program's argv, for the rungs from `first` on.
  static absl::StatusOr<std::unique_ptr<RungProcess>> Start(
      const std::vector<std::string>& command, size_t first);
  RungProcess(const RungProcess&) = delete;
  RungProcess& operator=(const RungProcess&) = delete;
  ~RungProcess();  // kills the process

  // The next rung's result. A rung that ends the process, or gives no sign of
  // life for ten minutes, has a failure that says so. Absent after the last
  // rung of the process; Internal if it ended between two rungs.
  absl::StatusOr<std::optional<LadderRun>> Next(const RungListener& listener);

 private:
  RungProcess(pid_t pid, int fd) : pid_(pid), fd_(fd) {}
  // Waits for the process's end and describes it: "crashed (SIGSEGV)". `status`
  // is that of waitpid.
  std::string DescribeEnd(int& status);

  pid_t pid_;
  int fd_;
  bool hung_ = false;
};

}  // namespace convlab

#endif  // MILESTONES_RUNG_PROCESS_H_
