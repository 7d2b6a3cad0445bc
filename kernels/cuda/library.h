// Shared libraries that are opened at run time: cuBLAS, cuDNN and CUPTI. A
// program that links one does not start where it is missing; opened here, a
// missing one costs only what needs it.
//
//   ASSIGN_OR_RETURN(const Library* library, OpenLibrary(kCudnn));
//   decltype(&cudnnCreate) create;
//   RETURN_IF_ERROR(LoadFunction(*library, "cudnnCreate", create));
#ifndef KERNELS_CUDA_LIBRARY_H_
#define KERNELS_CUDA_LIBRARY_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace convlab::cuda {

using LibraryVersion = std::array<int, 3>;  // major, minor, patch

// "9.14.0"
std::string ToString(const LibraryVersion& version);

// Which library to open.
struct LibraryRequest {
  const char* name;  // "cuDNN"
  const char* file;  // "libcudnn.so.9"
  // Asks an opened copy, given dlopen's handle; no GPU is needed.
  LibraryVersion (*version)(void* handle);
  // Files beside it that it will ask for by name, those first that others need.
  // They are taken from its own folder, where the loader would prefer
  // LD_LIBRARY_PATH's, of another version perhaps.
  std::vector<const char*> parts;
};

struct Library {
  std::string name;
  std::string path;  // of the copy that was opened, links followed
  LibraryVersion version;
  void* handle;  // dlopen's
};

// The newest copy in the folders that follow, in their order where versions are
// equal. It stays open for good, and later calls for the same file return it.
//   the folder given to SetLibraryFolder, and CONVLAB_LIBRARY_PATH's (a:b:c)
//   the toolkit's: CUDA_HOME, CUDA_PATH, /usr/local/cuda, /opt/cuda
//   the system's: LD_LIBRARY_PATH and what the dynamic loader knows
//   Python's packages nvidia-*, of each Python on the PATH
// Unavailable if there is none that can be opened: the message names the
// library and the folders, or what is wrong with the copies found. May be
// called by several threads.
absl::StatusOr<const Library*> OpenLibrary(const LibraryRequest& request);

// All that OpenLibrary has opened so far, for the run record.
std::vector<const Library*> OpenedLibraries();

// A folder in which to look first; for a command line's flag.
void SetLibraryFolder(const std::string& folder);

// The address of a function; Unavailable if this copy does not have it.
absl::StatusOr<void*> FindFunction(const Library& library, const char* name);

template <typename Function>
absl::Status LoadFunction(const Library& library, const char* name,
                          Function*& function) {
  const absl::StatusOr<void*> address = FindFunction(library, name);
  if (!address.ok()) return address.status();
  function = reinterpret_cast<Function*>(*address);
  return absl::OkStatus();
}

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_LIBRARY_H_
