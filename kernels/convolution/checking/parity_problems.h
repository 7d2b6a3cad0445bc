// The problems on which every variant is compared with the reference.
#ifndef KERNELS_CONVOLUTION_CHECKING_PARITY_PROBLEMS_H_
#define KERNELS_CONVOLUTION_CHECKING_PARITY_PROBLEMS_H_

#include <vector>

#include "kernels/convolution/convolution.h"

namespace convlab {

// The layers of all networks, each shape once, the shapes where indexing goes
// wrong, and on the GPU batches that fill it several times.
std::vector<Problem> ParityProblems(Backend backend);

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_CHECKING_PARITY_PROBLEMS_H_
