// Milestone 4: the ladder of optimizations, each on its own.
#include "kernels/judge/process/process.h"
#include "milestones/runner.h"

int main(int argc, char** argv) {
  convlab::RunAsKernelProcessIfAsked(argc, argv);
  return convlab::RunMilestone("m4", argc, argv);
}
