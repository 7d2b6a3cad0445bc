// The final milestone: the fastest convolution for each layer of the network.
#include "milestones/runner.h"

int main(int argc, char** argv) {
  return convlab::RunMilestone("final", argc, argv);
}
