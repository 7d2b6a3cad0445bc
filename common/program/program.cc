#include "common/program/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace convlab {
namespace {

std::vector<std::string> Environment(const ProgramOptions& options) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const bool replaced = std::any_of(
        options.environment.begin(), options.environment.end(),
        [&](const auto& set) {
          return absl::StartsWith(*variable, absl::StrCat(set.first, "="));
        });
    if (!replaced) variables.emplace_back(*variable);
  }
  for (const auto& [name, value] : options.environment) {
    variables.push_back(absl::StrCat(name, "=", value));
  }
  return variables;
}

// For exec, which takes what it does not change as not const.
std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) {
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Starts the program with `output` as its standard output and error; returns
// an errno.
int Spawn(const std::vector<std::string>& arguments,
          const ProgramOptions& options, int output, pid_t* process) {
  // First, since what follows is not freed if there is no memory for these.
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<std::string> variables = Environment(options);
  const std::vector<char*> envp = Pointers(variables);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int error = 0;
  if (!options.folder.empty()) {
    error =
        posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  }
  if (error == 0) {
    error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
                                             "/dev/null", O_RDONLY, 0);
  }
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    if (error == 0) {
      error = posix_spawn_file_actions_adddup2(&actions, output, stream);
    }
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  if (error == 0) {
    error = posix_spawnp(process, argv[0], &actions, &attributes, argv.data(),
                         envp.data());
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Reads until the other end is closed. False if that takes longer than
// `seconds` (0: any time).
bool ReadAll(int descriptor, double seconds, std::string* output) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    int wait_ms = -1;
    if (seconds > 0) {
      const std::chrono::duration<double> left = deadline - Clock::now();
      if (left.count() <= 0) return false;
      wait_ms = static_cast<int>(std::min(left.count() * 1e3, 1e6)) + 1;
    }
    pollfd event = {descriptor, POLLIN, 0};
    if (poll(&event, 1, wait_ms) <= 0) continue;  // time is up, or a signal
    char buffer[4096];
    const ssize_t size = read(descriptor, buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return true;
    // What is beyond is read, so that the program goes on, and dropped.
    const size_t room = kMostOutput - output->size();
    output->append(buffer, std::min(room, static_cast<size_t>(size)));
  }
}

}  // namespace

std::vector<std::string> PlacesOnPath(absl::string_view name) {
  const char* const path = std::getenv("PATH");
  std::vector<std::string> places;
  for (const absl::string_view folder : absl::StrSplit(
           path == nullptr ? "/usr/bin:/bin" : path, ':', absl::SkipEmpty())) {
    places.push_back(absl::StrCat(folder, "/", name));
  }
  return places;
}

std::string FindProgram(const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    std::error_code none;
    if (access(place.c_str(), X_OK) == 0 &&
        !std::filesystem::is_directory(place, none)) {
      return place;
    }
  }
  return "";
}

absl::StatusOr<ProgramResult> RunProgram(
    const std::vector<std::string>& arguments, const ProgramOptions& options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("no pipe: ", strerror(errno)));
  }
  pid_t process = 0;
  const int error = Spawn(arguments, options, ends[1], &process);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    const std::string told =
        absl::StrCat("cannot run ", arguments[0], ": ", strerror(error));
    const bool missing = error == ENOENT || error == ENOTDIR || error == EACCES;
    return missing ? absl::NotFoundError(told)
                   : absl::ResourceExhaustedError(told);
  }
  ProgramResult result;
  const bool ended = ReadAll(ends[0], options.seconds, &result.output);
  close(ends[0]);
  if (!ended) kill(-process, SIGKILL);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) {
    return absl::DeadlineExceededError(
        absl::StrCat(arguments[0], " took more than ", options.seconds, " s"));
  }
  result.exit_status =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace convlab
