// How many of the workers a thread's loops had.
#ifndef COMMON_PARALLEL_LOOP_WORKERS_H_
#define COMMON_PARALLEL_LOOP_WORKERS_H_

namespace convlab {

// Returns the most workers that one loop (Workers::For) of the calling thread
// had since the last call, itself included, and begins anew. 1 if there was no
// loop.
int TakeLoopWorkers();

}  // namespace convlab

#endif  // COMMON_PARALLEL_LOOP_WORKERS_H_
