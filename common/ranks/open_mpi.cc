#include "common/ranks/open_mpi.h"

#include <dlfcn.h>

#include <type_traits>

#include "absl/strings/str_cat.h"

namespace convlab {

absl::StatusOr<Mpi> OpenMpi() {
  void* handle = nullptr;
  for (const char* file : {"libmpi.so.40", "libmpi.so"}) {
    // Global: its plug-ins look for its names.
    if (handle == nullptr) handle = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
  }
  if (handle == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("Open MPI cannot be opened: ", dlerror()));
  }
  Mpi mpi = {};
  const char* missing = nullptr;
  const auto load = [&](const char* name, auto& address) {
    void* const found = dlsym(handle, name);
    if (found == nullptr) missing = name;
    address = reinterpret_cast<std::decay_t<decltype(address)>>(found);
  };
  load("MPI_Init_thread", mpi.init);
  load("MPI_Finalize", mpi.finalize);
  load("MPI_Abort", mpi.abort);
  load("MPI_Comm_rank", mpi.rank);
  load("MPI_Comm_size", mpi.size);
  load("MPI_Comm_set_errhandler", mpi.set_errhandler);
  load("MPI_Allgather", mpi.allgather);
  load("MPI_Bcast", mpi.bcast);
  load("MPI_Isend", mpi.isend);
  load("MPI_Irecv", mpi.irecv);
  load("MPI_Iprobe", mpi.iprobe);
  load("MPI_Get_count", mpi.get_count);
  load("MPI_Test", mpi.test);
  load("MPI_Error_string", mpi.error_string);
  load("ompi_mpi_comm_world", mpi.world);
  load("ompi_mpi_byte", mpi.byte);
  load("ompi_mpi_errors_return", mpi.errors_return);
  if (missing == nullptr) return mpi;
  return absl::UnavailableError(absl::StrCat(
      "the MPI library that was found is not Open MPI: it has no ", missing));
}

absl::Status MpiStatus(const Mpi& mpi, int code, const char* call) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  mpi.error_string(code, text, &length);
  return absl::InternalError(absl::StrCat(call, ": ", text));
}

}  // namespace convlab
