// Milestone 2: the network with our own convolution on the CPU.
#include "milestones/runner.h"

int main(int argc, char** argv) {
  return convlab::RunMilestone("m2", argc, argv);
}
