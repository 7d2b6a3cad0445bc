// How a kernel's process ended. The process writes a note into a page that it
// shares with the judge, who reads it when the process is dead. A kernel can
// write there too: the note makes the message better and decides nothing.
#ifndef KERNELS_JUDGE_PROCESS_LAST_WORDS_H_
#define KERNELS_JUDGE_PROCESS_LAST_WORDS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/judge/process/shared_tensors.h"

namespace convlab {

struct Note {
  int32_t signal = 0;
  int32_t system_call = -1;  // that was refused
  int32_t exited = 0;        // 1: exit() was called with `exit_status`
  int32_t exit_status = 0;
  int32_t tensor = -1;      // near to which an address was that is not mapped
  int32_t writing = -1;     // 1: it was written to, 0: read, -1: unknown
  int64_t distance = 0;     // as GuardedTensors::Near has it
  char function[128] = {};  // of the library; mangled
  char text[256] = {};      // in words, of an exception for example
};

// The judge's side: creates the page and its descriptor.
class NotePage {
 public:
  static absl::StatusOr<NotePage> Create();
  NotePage(NotePage&& other) noexcept;
  NotePage& operator=(NotePage&&) = delete;
  ~NotePage();

  int file() const { return file_; }
  Note Read() const;

 private:
  NotePage(int file, const Note* note) : file_(file), note_(note) {}
  int file_;
  const Note* note_;
};

// How a process ended, from its note and from what waitpid() said of it or of
// bubblewrap, which exits with 128 and the number of the signal: "crashed
// (SIGSEGV) in conv_forward_cpu: wrote 4 bytes behind y", "called exit(0)". The
// status is KernelFault's.
absl::Status EndOf(const Note& note, int wait_status);

// Text from a kernel's process on one line and in printable characters.
std::string Harmless(absl::string_view text);

// The side of the kernel's process. Maps the page of descriptor `file`, closes
// the descriptor, and installs handlers of signals, exit() and exceptions.
bool KeepNotes(int file, const GuardedTensors* tensors);
// Notes why the process is about to end.
void NoteText(absl::string_view text);
// From now on, functions of the library at this address are named.
void NameFunctionsOf(const void* address_in_library);
// In a catch block: "threw std::bad_alloc: std::bad_alloc".
std::string DescribeException();

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_LAST_WORDS_H_
