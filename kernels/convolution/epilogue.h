// What may follow a convolution in the same pass. This header is small because
// nvcc parses it once per architecture.
#ifndef KERNELS_CONVOLUTION_EPILOGUE_H_
#define KERNELS_CONVOLUTION_EPILOGUE_H_

#include "common/network/layer.h"
#include "kernels/convolution/problem.h"

namespace convlab {

// The bias is added to the sums, then comes the activation, then max pooling,
// so that y becomes B x M x pool.Output(H_out) x pool.Output(W_out). All three
// are monotonic, so the maximum may be taken first, which leaves fewer values
// for the others: for finite biases the result is the same.
struct Epilogue {
  // M floats in the backend's memory, which Run reads; null: no bias.
  const float* bias = nullptr;
  Activation activation = Activation::kNone;
  MaxPool pool;

  constexpr bool empty() const {
    return bias == nullptr && activation == Activation::kNone && pool.size == 0;
  }
  // Elements of y, where the convolution alone has problem.output_elements().
  int64_t output_elements(const Problem& problem) const {
    return problem.batch * problem.filters *
           pool.Output(problem.output_height()) *
           pool.Output(problem.output_width());
  }
};

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_EPILOGUE_H_
