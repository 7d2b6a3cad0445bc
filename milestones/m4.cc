// Milestone 4: the ladder of optimizations, each on its own.
#include "milestones/runner.h"

int main(int argc, char** argv) {
  return convlab::RunMilestone("m4", argc, argv);
}
