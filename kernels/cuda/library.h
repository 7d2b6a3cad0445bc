// Shared libraries that are opened at run time: cuBLAS, cuDNN and CUPTI. A
// program that links a library does not start where the library is missing; if
// the library is opened here, only the features that need it are unavailable.
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
  // Returns the version of an opened copy, given dlopen's handle; needs no GPU.
  LibraryVersion (*version)(void* handle);
  // Files beside it that it opens by name, in the order of their dependencies.
  // They are loaded from its own folder; the loader would prefer
  // LD_LIBRARY_PATH, where another version may be.
  std::vector<const char*> parts;
};

struct Library {
  std::string name;
  std::string path;  // of the opened copy, with links resolved
  LibraryVersion version;
  void* handle;  // dlopen's
};

// Opens the newest copy in these folders, or the first of equal versions. It
// stays open, and later calls for the same file return it.
//   the folder given to SetLibraryFolder, and those of CONVLAB_LIBRARY_PATH
//   (a:b:c)
//   the toolkit's: CUDA_HOME, CUDA_PATH, /usr/local/cuda, /opt/cuda
//   the system's: LD_LIBRARY_PATH and the dynamic loader's folders
//   Python's packages nvidia-*, of each Python on the PATH
// Returns Unavailable if no copy can be opened: the message names the library
// and the folders, or what is wrong with the copies that were found.
// Thread-safe.
absl::StatusOr<const Library*> OpenLibrary(const LibraryRequest& request);

// All libraries opened so far, for the run record.
std::vector<const Library*> OpenedLibraries();

// Sets a folder to be searched first; for a command-line flag.
void SetLibraryFolder(const std::string& folder);

// Loads the address of a function; Unavailable if this copy lacks it.
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
