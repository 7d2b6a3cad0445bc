#include "kernels/cuda/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status/status.h"

namespace convlab::cuda {
namespace {

struct State {
  std::mutex mutex;
  std::string user_folder;
  std::vector<std::unique_ptr<Library>> opened;
};

State& GetState() {
  static State* const state = new State;
  return *state;
}

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string RealPath(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) == nullptr ? path : resolved;
}

// Folders that contain libraries directly, in search order.
std::vector<std::string> LibraryFolders(const std::string& user_folder) {
  std::vector<std::string> folders = {user_folder};
  for (const absl::string_view folder :
       absl::StrSplit(Environment("CONVLAB_LIBRARY_PATH"), ':')) {
    folders.emplace_back(folder);
  }
  for (const std::string& toolkit :
       {Environment("CUDA_HOME"), Environment("CUDA_PATH"),
        std::string("/usr/local/cuda"), std::string("/opt/cuda")}) {
    // "none" tells the build to do without a toolkit.
    if (toolkit.empty() || toolkit == "none") continue;
    for (const char* folder :
         {"lib64", "targets/x86_64-linux/lib", "lib", "extras/CUPTI/lib64"}) {
      folders.push_back(absl::StrCat(toolkit, "/", folder));
    }
  }
  folders.erase(std::remove(folders.begin(), folders.end(), ""), folders.end());
  return folders;
}

// Folders with lib/python3*/site-packages: environments and where a Python is.
std::vector<std::string> PythonFolders() {
  std::vector<std::string> folders = {Environment("VIRTUAL_ENV"),
                                      Environment("CONDA_PREFIX")};
  for (const absl::string_view folder :
       absl::StrSplit(Environment("PATH"), ':')) {
    const std::string python = absl::StrCat(folder, "/python3");
    if (access(python.c_str(), X_OK) != 0) continue;
    folders.push_back(absl::StrCat(folder, "/.."));
    // For a virtual environment, the Python that it was made from.
    folders.push_back(absl::StrCat(RealPath(python), "/../.."));
  }
  if (const std::string home = Environment("HOME"); !home.empty()) {
    folders.push_back(absl::StrCat(home, "/.local"));
  }
  std::vector<std::string> unique;
  for (const std::string& folder : folders) {
    if (folder.empty()) continue;
    std::string path = RealPath(folder);
    if (std::find(unique.begin(), unique.end(), path) == unique.end()) {
      unique.push_back(std::move(path));
    }
  }
  return unique;
}

std::vector<std::string> Glob(const std::string& pattern) {
  glob_t found = {};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), GLOB_BRACE, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return paths;
}

// The version that one copy of a library reports.
struct Copy {
  std::string path;
  LibraryVersion version = {};
  std::string error;  // empty: it can be opened
};

// The path that dlopen found for a name.
std::string PathOf(void* handle) {
  const link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "";
  return RealPath(map->l_name);
}

// Opens a file with its parts. For a bare file name the loader finds the parts.
void* Open(const LibraryRequest& request, const std::string& path) {
  if (const size_t slash = path.rfind('/'); slash != std::string::npos) {
    for (const char* part : request.parts) {
      // Which parts exist depends on the version.
      dlopen(absl::StrCat(path.substr(0, slash + 1), part).c_str(),
             RTLD_LAZY | RTLD_LOCAL);
    }
  }
  return dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
}

void WriteAll(int file, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    done += count;
  }
}

std::string ReadAll(int file) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t count = read(file, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, count);
  }
}

// Opens `path` in a child process and asks its version there. In this process,
// cuDNN's parts would stay loaded after dlclose and be mistaken for those of
// the next copy, because they have the same names.
Copy Ask(const LibraryRequest& request, const std::string& path) {
  Copy copy;
  copy.path = path;
  int ends[2];
  if (pipe(ends) != 0) {
    copy.error = absl::StrCat("pipe: ", std::strerror(errno));
    return copy;
  }
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    void* const handle = Open(request, path);
    if (handle == nullptr) {
      WriteAll(ends[1], absl::StrCat("error\n", dlerror()));
    } else {
      const LibraryVersion version = request.version(handle);
      WriteAll(ends[1], absl::StrCat("opened\n", version[0], "\n", version[1],
                                     "\n", version[2], "\n", PathOf(handle)));
    }
    _exit(0);
  }
  close(ends[1]);
  const std::string answer = ReadAll(ends[0]);
  close(ends[0]);
  if (child > 0) {
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  const std::vector<std::string> parts =
      absl::StrSplit(answer, absl::MaxSplits('\n', 4));
  if (parts.size() == 5 && parts[0] == "opened") {
    for (int i = 0; i < 3; ++i) copy.version[i] = std::stoi(parts[1 + i]);
    copy.path = parts[4];
  } else if (parts[0] == "error") {
    copy.error = answer.substr(std::strlen("error\n"));
  } else {
    copy.error = child < 0 ? "no process could be started to open it"
                           : "it ended the process that asked its version";
  }
  return copy;
}

// All copies in the folders of the search, each once.
std::vector<Copy> FindCopies(const LibraryRequest& request,
                             const std::vector<std::string>& folders,
                             const std::vector<std::string>& python_folders) {
  std::vector<std::string> paths;
  const auto add = [&](const std::string& path) {
    if (access(path.c_str(), R_OK) == 0) paths.push_back(RealPath(path));
  };
  for (const std::string& folder : folders) {
    add(absl::StrCat(folder, "/", request.file));
  }
  // The system's loader looks up a bare name.
  paths.push_back(request.file);
  for (const std::string& folder : python_folders) {
    for (const std::string& path : Glob(absl::StrCat(
             folder, "/lib*/python3*/{site,dist}-packages/nvidia/*/lib/",
             request.file))) {
      add(path);
    }
  }
  std::vector<Copy> copies;
  const auto known = [&](const std::string& path) {
    return std::any_of(copies.begin(), copies.end(),
                       [&](const Copy& copy) { return copy.path == path; });
  };
  for (const std::string& path : paths) {
    if (known(path)) continue;
    Copy copy = Ask(request, path);
    const bool unknown_to_system =
        path == request.file && !copy.error.empty() &&
        copy.error.find("cannot open shared object file") != std::string::npos;
    if (!unknown_to_system && !known(copy.path)) {
      copies.push_back(std::move(copy));
    }
  }
  return copies;
}

absl::Status Missing(const LibraryRequest& request,
                     const std::vector<Copy>& copies,
                     const std::vector<std::string>& folders,
                     const std::vector<std::string>& python_folders) {
  if (!copies.empty()) {
    return absl::UnavailableError(absl::StrCat(
        request.name, " cannot be opened: ",
        absl::StrJoin(copies, "; ", [](std::string* out, const Copy& copy) {
          absl::StrAppend(out, copy.path, ": ", copy.error);
        })));
  }
  return absl::UnavailableError(absl::StrCat(
      request.name, " (", request.file,
      ") was not found; looked in: ", absl::StrJoin(folders, ", "),
      ", the system's library folders, Python's nvidia packages under ",
      absl::StrJoin(python_folders, ", "),
      "; CONVLAB_LIBRARY_PATH may name another folder"));
}

}  // namespace

std::string ToString(const LibraryVersion& version) {
  return absl::StrJoin(version, ".");
}

absl::StatusOr<const Library*> OpenLibrary(const LibraryRequest& request) {
  State& state = GetState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  for (const auto& library : state.opened) {
    if (library->name == request.name) return library.get();
  }
  const std::vector<std::string> folders = LibraryFolders(state.user_folder);
  const std::vector<std::string> python_folders = PythonFolders();
  const std::vector<Copy> copies = FindCopies(request, folders, python_folders);
  const Copy* newest = nullptr;
  for (const Copy& copy : copies) {
    if (copy.error.empty() &&
        (newest == nullptr || copy.version > newest->version)) {
      newest = &copy;
    }
  }
  if (newest == nullptr) {
    return Missing(request, copies, folders, python_folders);
  }
  void* const handle = Open(request, newest->path);
  if (handle == nullptr) return absl::UnavailableError(dlerror());
  state.opened.push_back(std::make_unique<Library>(
      Library{request.name, newest->path, newest->version, handle}));
  return state.opened.back().get();
}

std::vector<const Library*> OpenedLibraries() {
  State& state = GetState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  std::vector<const Library*> libraries;
  for (const auto& library : state.opened) libraries.push_back(library.get());
  return libraries;
}

void SetLibraryFolder(const std::string& folder) {
  State& state = GetState();
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.user_folder = folder;
}

absl::StatusOr<void*> FindFunction(const Library& library, const char* name) {
  void* const address = dlsym(library.handle, name);
  if (address != nullptr) return address;
  return absl::UnavailableError(
      absl::StrCat(library.name, " ", ToString(library.version), " in ",
                   library.path, " has no function ", name));
}

}  // namespace convlab::cuda
