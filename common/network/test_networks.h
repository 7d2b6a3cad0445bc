// Networks that are not in the table, for tests.
#ifndef COMMON_NETWORK_TEST_NETWORKS_H_
#define COMMON_NETWORK_TEST_NETWORKS_H_

#include "common/network/network.h"

namespace convlab {

// LeNet-5 as KernelBench has it (level 3, problem 4): images of 1x32x32, every
// layer with a bias, three fully connected layers, 20 classes.
inline Network LeNet5() {
  constexpr Activation kRelu = Activation::kRelu;
  constexpr MaxPool kHalve{2, 2, false};
  return {"lenet5",
          {},
          1,
          32,
          {ConvolutionLayer{6, 5, true}, kRelu, kHalve,
           ConvolutionLayer{16, 5, true}, kRelu, kHalve,
           FullyConnectedLayer{120, true}, kRelu, FullyConnectedLayer{84, true},
           kRelu, FullyConnectedLayer{20, true}}};
}

}  // namespace convlab

#endif  // COMMON_NETWORK_TEST_NETWORKS_H_
