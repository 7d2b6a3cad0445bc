// Implements cublas.h in a build whose toolkit lacks cuBLAS's headers.
#include "kernels/cuda/cublas.h"

namespace convlab::cuda {

const char* WhyNoCublas() {
  return "this program was built with a CUDA Toolkit that lacks cuBLAS";
}

Cublas::~Cublas() {}
Error Cublas::Create() { return {"cuBLAS", WhyNoCublas()}; }
Error Cublas::Multiply(const MatrixProduct&, const float*, const float*, float*,
                       cudaStream_t) {
  return {"cuBLAS", WhyNoCublas()};
}

}  // namespace convlab::cuda
