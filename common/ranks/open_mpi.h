// Open MPI's functions, opened at run time.
#ifndef COMMON_RANKS_OPEN_MPI_H_
#define COMMON_RANKS_OPEN_MPI_H_

// Its C++ classes are no longer part of MPI.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace convlab {

// What is used of the library.
struct Mpi {
  decltype(&MPI_Init_thread) init;
  decltype(&MPI_Finalize) finalize;
  decltype(&MPI_Abort) abort;
  decltype(&MPI_Comm_rank) rank;
  decltype(&MPI_Comm_size) size;
  decltype(&MPI_Comm_set_errhandler) set_errhandler;
  decltype(&MPI_Allgather) allgather;
  decltype(&MPI_Bcast) bcast;
  decltype(&MPI_Isend) isend;
  decltype(&MPI_Irecv) irecv;
  decltype(&MPI_Iprobe) iprobe;
  decltype(&MPI_Get_count) get_count;
  decltype(&MPI_Test) test;
  decltype(&MPI_Error_string) error_string;
  // The names in mpi.h are addresses of the library's variables.
  MPI_Comm world;
  MPI_Datatype byte;
  MPI_Errhandler errors_return;
};

// Unavailable if the library is missing, or another MPI.
absl::StatusOr<Mpi> OpenMpi();

// Internal, with MPI's text, if `code`, which `call` returned, is an error.
absl::Status MpiStatus(const Mpi& mpi, int code, const char* call);

}  // namespace convlab

#endif  // COMMON_RANKS_OPEN_MPI_H_
