// The CPUs of a rank.
#ifndef COMMON_RANKS_BINDING_H_
#define COMMON_RANKS_BINDING_H_

namespace convlab {

// How many threads compute in a process that mpirun may have started: as many
// as are `wanted`, or, where that is 0, its share of the host's CPUs, which are
// its own where the user told mpirun so.
//
// Unless it is told otherwise, mpirun binds each of one or two ranks to a core,
// which is for ranks of one thread. If more are needed, this process goes back
// to the CPUs that mpirun has; `*left` is the number that it was bound to, or
// 0. Called before there are threads.
int ThreadsOfRank(int wanted, int* left);

}  // namespace convlab

#endif  // COMMON_RANKS_BINDING_H_
