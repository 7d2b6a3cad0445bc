// What keeps a contributed kernel from reaching beyond its process: bubblewrap
// round the process, where it works; and inside of it, before the library is
// loaded, limits and a filter of system calls that need no privilege.
#ifndef KERNELS_JUDGE_PROCESS_SANDBOX_H_
#define KERNELS_JUDGE_PROCESS_SANDBOX_H_

#include <cstdint>
#include <string>
#include <vector>

namespace convlab {

// The command that is put before a program's: a read-only view of the file
// system, without network and without sight of other processes. Empty if there
// is no bubblewrap on the PATH. Whether it works is only seen when it is tried:
// it needs user namespaces, or root.
std::vector<std::string> BubblewrapCommand(bool gpu);

// Gives up what root can do, and sets limits of files, core dumps and, unless
// `data_bytes` is 0, private memory. For this process and for good.
bool LimitProcess(int64_t data_bytes);

// From now on, no file can be written, made, renamed or removed, but for the
// devices of GPUs and what belongs to the process itself below /proc. False
// where the system has no Landlock. For this process and for good; to be called
// after LimitProcess.
bool ForbidWriting();

// Limits the process to this number of its CPUs.
void LimitThreads(int threads);

// From now on, system calls that start a process or program, reach for another
// process or open a connection raise SIGSYS. For this process and for good;
// `keep_affinity` also keeps it from leaving the CPUs that it was given.
bool FilterSystemCalls(bool keep_affinity);

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_SANDBOX_H_
