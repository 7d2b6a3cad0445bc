// The program classify.
#ifndef MILESTONES_CLASSIFYING_RUN_H_
#define MILESTONES_CLASSIFYING_RUN_H_

namespace convlab {

// Parses the command line, runs the network and prints what came out. Returns
// the exit status.
int RunClassify(int argc, char** argv);

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_RUN_H_
