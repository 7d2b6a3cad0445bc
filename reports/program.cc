#include "reports/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace convlab {
namespace {

// The last line that is not blank.
std::string LastLine(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const size_t end = text.rfind('\n');
  return std::string(end == absl::string_view::npos ? text
                                                    : text.substr(end + 1));
}

}  // namespace

absl::Status RunProgram(const std::vector<std::string>& arguments,
                        const std::string& folder) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("no pipe: ", strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                   O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  pid_t process;
  const int error =
      posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string output;
  if (error == 0) {
    char buffer[4096];
    ssize_t size;
    while ((size = read(ends[0], buffer, sizeof(buffer))) > 0) {
      output.append(buffer, size);
    }
  }
  close(ends[0]);
  if (error != 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot run ", arguments[0], ": ", strerror(error)));
  }
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(arguments[0], " failed: ", LastLine(output)));
}

}  // namespace convlab
