// The network as a compiled whole: bytes to labels.
#include "milestones/classifying/run.h"

int main(int argc, char** argv) { return convlab::RunClassify(argc, argv); }
