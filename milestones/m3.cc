// Milestone 3: the network with the textbook's convolution on the GPU.
#include "kernels/judge/process/process.h"
#include "milestones/runner.h"

int main(int argc, char** argv) {
  convlab::RunAsKernelProcessIfAsked(argc, argv);
  return convlab::RunMilestone("m3", argc, argv);
}
