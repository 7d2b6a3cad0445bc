// All milestones in one program, for the bundle: convlab NAME [MODEL] [SIZE]
// [flags]. Kernels are most of a program's size, and this program contains them
// once.
#include <cstdio>

#include "kernels/judge/process/process.h"
#include "milestones/milestone.h"
#include "milestones/runner.h"

int main(int argc, char** argv) {
  convlab::RunAsKernelProcessIfAsked(argc, argv);
  if (argc < 2 || !convlab::IsMilestone(argv[1])) {
    std::fprintf(
        stderr, "convlab: which milestone? Expected m1, m2, m3, m4 or final\n");
    return 2;
  }
  return convlab::RunMilestone(argv[1], argc - 1, argv + 1);
}
