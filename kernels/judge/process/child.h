// The judge's hold on a kernel's process: starts, watches, stops and kills it.
#ifndef KERNELS_JUDGE_PROCESS_CHILD_H_
#define KERNELS_JUDGE_PROCESS_CHILD_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/judge/process/fault.h"
#include "kernels/judge/process/last_words.h"
#include "kernels/judge/process/messages.h"

namespace convlab {

// Nanoseconds of the judge's clock.
int64_t JudgeNow();

class Child {
 public:
  // Starts `command` (with what it starts in turn) with the descriptors of
  // messages.h, in a process group of its own. It dies with this thread.
  static absl::StatusOr<std::unique_ptr<Child>> Start(
      const std::vector<std::string>& command);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  // Limits from now on: of resident memory, and of the time for each answer.
  void SetLimits(int64_t resident_bytes, double seconds);

  // Who is told of a wait (ProcessOptions::waiting); may be nobody.
  void SetListener(std::function<void(double seconds)> waiting,
                   double patience);

  // Sends a message, and a descriptor unless it is -1.
  absl::Status Send(const Request& request, int file);
  // Waits for a message. Aborted with what happened if the process ended, broke
  // a limit, or sent something else; it is dead then.
  absl::Status Receive(Reply* reply);

  // Stops all threads of the process, and lets them run again. Between Stop and
  // Continue, the process changes nothing.
  void Stop();
  void Continue();

  // Kills the process and all that it started. May be called again.
  void Kill();
  bool dead() const { return pid_ < 0; }

  // Ends the connection and waits for the process to end by itself, for at most
  // `seconds`; then kills what is left. A process that a wrapper started ends
  // in order then.
  void Finish(double seconds);

  // How long the process's first thread and this one have waited for a CPU; 0
  // if the system does not tell.
  int64_t WaitedForCpu() const;
  // Its resident memory that is not shared, as the tensors are; 0 if unknown.
  int64_t PrivateBytes() const;
  // What it printed, at most 64 KiB.
  const std::string& Printed();

 private:
  Child(pid_t pid, int socket, int output, NotePage note)
      : pid_(pid), socket_(socket), output_(output), note_(std::move(note)) {}

  void Drain();
  absl::Status CheckUsage();
  // Waits until there is a message, the process has ended, or a limit is
  // broken.
  absl::Status Wait();
  // Waits a moment for the end of the process, kills it, and says how it ended;
  // `otherwise` if it had not ended.
  absl::Status Ended(const char* otherwise);
  absl::Status Broken(const std::string& what, Fault fault = Fault::kEnded);

  pid_t pid_;         // that was started; -1: it is dead
  pid_t kernel_ = 0;  // the kernel's process; 0: unknown
  int socket_;
  int output_;
  NotePage note_;
  int wait_status_ = 0;
  int64_t resident_bytes_ = 0;
  double seconds_ = 60;
  std::function<void(double seconds)> waiting_;
  double patience_ = 0;
  std::string printed_;
};

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_CHILD_H_
