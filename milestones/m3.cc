// Milestone 3: the network with the textbook's convolution on the GPU.
#include "milestones/runner.h"

int main(int argc, char** argv) {
  return convlab::RunMilestone("m3", argc, argv);
}
