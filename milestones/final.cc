// The final milestone: the fastest convolution for each layer of the network.
#include "kernels/judge/process/process.h"
#include "milestones/runner.h"

int main(int argc, char** argv) {
  convlab::RunAsKernelProcessIfAsked(argc, argv);
  return convlab::RunMilestone("final", argc, argv);
}
