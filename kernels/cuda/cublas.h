// Matrix products by cuBLAS, for .cu files and host code inside kernels. The
// library is opened at run time (library.h). Light, as error.h is.
//
//   if (const char* reason = WhyNoCublas()) ...  // not here, and why
//   Cublas cublas;
//   RETURN_IF_FAILED(cublas.Create());
//   RETURN_IF_FAILED(cublas.Multiply({rows, columns, depth}, a, b, c));
#ifndef KERNELS_CUDA_CUBLAS_H_
#define KERNELS_CUDA_CUBLAS_H_

#include <cstdint>

#include "kernels/cuda/error.h"

namespace convlab::cuda {

// Null if cuBLAS can be used; otherwise the reason, a string that stays valid.
// Opens the library when first called, and needs no GPU.
const char* WhyNoCublas();

// C = A * B + beta * C of row-major float32 matrices in device memory: C of
// rows x columns, A of rows x depth, B of depth x columns.
struct MatrixProduct {
  int64_t rows, columns, depth;
  bool b_transposed = false;  // B is stored as columns x depth
  float beta = 0;
  int64_t c_pitch = 0;  // stride of C's rows in elements; 0: columns
  // A batch of `count` products; strides in elements from one to the next.
  int64_t count = 1;
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;
};

// A cuBLAS handle on the current device. Its products use float32 only
// (CUBLAS_PEDANTIC_MATH), whatever the environment allows.
class Cublas {
 public:
  Cublas() = default;
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  ~Cublas();

  // Must be called once, before Multiply.
  Error Create();

  // Queues the product in `stream`. No dimension may exceed 2^31 - 1.
  Error Multiply(const MatrixProduct& product, const float* a, const float* b,
                 float* c, cudaStream_t stream);

 private:
  void* handle_ = nullptr;  // cublasHandle_t
};

}  // namespace convlab::cuda

#endif  // KERNELS_CUDA_CUBLAS_H_
