// What fake_cuda.cc has seen, for tests that it is linked into.
#ifndef TOOLS_FAULTS_FAKE_CUDA_H_
#define TOOLS_FAULTS_FAKE_CUDA_H_

namespace convlab {

// Calls of the runtime that may fail, launches among them.
long FakeCudaCalls();
long FakeCudaLaunches();

}  // namespace convlab

#endif  // TOOLS_FAULTS_FAKE_CUDA_H_
