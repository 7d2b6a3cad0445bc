// Milestone 3: the network with our own convolution on the GPU, as the textbook
// has it.
#include "milestones/runner.h"

int main(int argc, char** argv) {
  return convlab::RunMilestone("m3", argc, argv);
}
