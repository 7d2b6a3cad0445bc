// Milestone 2: the network with our own convolution on the CPU.
#include "kernels/judge/process/process.h"
#include "milestones/runner.h"

int main(int argc, char** argv) {
  convlab::RunAsKernelProcessIfAsked(argc, argv);
  return convlab::RunMilestone("m2", argc, argv);
}
