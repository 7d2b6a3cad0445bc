// Milestone 1: the network run by a framework's own operators, to be profiled.
#include "kernels/judge/process/process.h"
#include "milestones/runner.h"

int main(int argc, char** argv) {
  convlab::RunAsKernelProcessIfAsked(argc, argv);
  return convlab::RunMilestone("m1", argc, argv);
}
