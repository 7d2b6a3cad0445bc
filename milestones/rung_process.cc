#include "milestones/rung_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status/status.h"

namespace convlab {
namespace {

// "DESCRIPTOR:FIRST"
constexpr char kVariable[] = "CONVLAB_RUNGS";

constexpr int kMostSilenceMs = 10 * 60 * 1000;

// A message: its kind, its length and its text.
enum Kind : char { kBegin = 'b', kProgress = 'p', kNote = 'n', kEnd = 'e' };
struct Header {
  char kind;
  uint32_t size;
};
// A record of one rung has some kilobytes.
constexpr uint32_t kMostBytes = uint32_t{64} << 20;

struct Message {
  char kind;
  std::string text;
};

void Send(int fd, Kind kind, const std::string& text) {
  const Header header = {kind, static_cast<uint32_t>(text.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes += text;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t written = write(fd, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    // The program is gone.
    if (written <= 0) std::_Exit(1);
    done += written;
  }
}

// Whether `bytes` were read; false at the end, or after too long a silence,
// which sets `hung`.
bool Receive(int fd, char* bytes, size_t size, bool& hung) {
  while (size > 0) {
    pollfd wait = {fd, POLLIN, 0};
    const int ready = poll(&wait, 1, kMostSilenceMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      hung = true;
      return false;
    }
    const ssize_t count = read(fd, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes += count;
    size -= count;
  }
  return true;
}

std::optional<Message> Receive(int fd, bool& hung) {
  Header header;
  if (!Receive(fd, reinterpret_cast<char*>(&header), sizeof(header), hung) ||
      header.size > kMostBytes) {
    return std::nullopt;
  }
  Message message = {header.kind, std::string(header.size, '\0')};
  if (!Receive(fd, message.text.data(), message.text.size(), hung)) {
    return std::nullopt;
  }
  return message;
}

}  // namespace

std::optional<RungReporter> RungReporter::FromEnvironment() {
  const char* const value = std::getenv(kVariable);
  if (value == nullptr) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(value, ':');
  int fd;
  int first;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &fd) ||
      !absl::SimpleAtoi(parts[1], &first) || first < 0) {
    return std::nullopt;
  }
  return RungReporter(fd, first);
}

void RungReporter::Begin(const std::string& variant) const {
  Send(fd_, kBegin, variant);
}

void RungReporter::Progress(double share) const {
  Send(fd_, kProgress, absl::StrCat(share));
}

void RungReporter::Note(const std::string& text) const {
  Send(fd_, kNote, text);
}

void RungReporter::End(const LadderRun& run, int64_t images) const {
  RunRecord record;
  record.size = images;
  record.ladder = {run};
  Send(fd_, kEnd, ToJson(record));
}

absl::StatusOr<std::unique_ptr<RungProcess>> RungProcess::Start(
    const std::vector<std::string>& command, size_t first) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("pipe: ", strerror(errno)));
  }
  // Everything that allocates memory precedes the fork: other threads may hold
  // the allocator's lock.
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  const std::string variable =
      absl::StrCat(kVariable, "=", ends[1], ":", first);
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    environment.push_back(*entry);
  }
  environment.push_back(const_cast<char*>(variable.c_str()));
  environment.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return absl::InternalError(absl::StrCat("fork: ", strerror(errno)));
  }
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    // What rungs print is not the program's output.
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDOUT_FILENO);
    fcntl(ends[1], F_SETFD, 0);
    execve("/proc/self/exe", argv.data(), environment.data());
    _exit(127);
  }
  close(ends[1]);
  return std::unique_ptr<RungProcess>(new RungProcess(pid, ends[0]));
}

RungProcess::~RungProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(fd_);
}

std::string RungProcess::DescribeEnd(int& status) {
  if (hung_) kill(pid_, SIGKILL);
  waitpid(pid_, &status, 0);
  pid_ = -1;
  if (hung_) {
    return absl::StrCat("gave no sign of life for ", kMostSilenceMs / 60000,
                        " minutes and was ended");
  }
  if (WIFSIGNALED(status)) {
    return absl::StrCat("crashed (SIG", sigabbrev_np(WTERMSIG(status)), ")");
  }
  return absl::StrCat("ended its process with status ", WEXITSTATUS(status));
}

absl::StatusOr<std::optional<LadderRun>> RungProcess::Next(
    const RungListener& listener) {
  std::string variant;
  while (const std::optional<Message> message = Receive(fd_, hung_)) {
    double share;
    switch (message->kind) {
      case kBegin:
        variant = message->text;
        listener.begin(variant);
        break;
      case kProgress:
        if (absl::SimpleAtod(message->text, &share)) listener.progress(share);
        break;
      case kNote:
        listener.note(message->text);
        break;
      case kEnd: {
        ASSIGN_OR_RETURN(RunRecord record, ParseRunRecord(message->text));
        if (record.ladder.size() != 1) {
          return absl::InternalError("a rung's process sent no rung");
        }
        return std::optional<LadderRun>(std::move(record.ladder.front()));
      }
      default:
        return absl::InternalError("a rung's process sent an unknown message");
    }
  }
  int status = 0;
  const std::string end = DescribeEnd(status);
  if (variant.empty()) {
    if (!hung_ && status == 0) return std::optional<LadderRun>();
    return absl::InternalError(
        absl::StrCat("the process that runs the variants ", end));
  }
  LadderRun run;
  run.variant = variant;
  run.failure = absl::StrCat("FAILED: ", end);
  return std::optional<LadderRun>(std::move(run));
}

}  // namespace convlab
