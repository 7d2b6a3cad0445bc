// Keeps a workspace and a count of its calls at file scope.
// Nothing to catch: the state is not the result.
#include "convolve.cuh"

static float* workspace = nullptr;
static size_t workspace_bytes = 0;
static int calls = 0;

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K,
                            cudaStream_t stream) {
  ++calls;
  const size_t bytes = OutputBytes(B, H, W, M, K);
  if (workspace_bytes < bytes) {
    cudaFree(workspace);
    cudaMalloc(&workspace, bytes);
    workspace_bytes = bytes;
  }
  Convolve(x, k, workspace, B, C, H, W, M, K, stream);
  cudaMemcpyAsync(y, workspace, bytes, cudaMemcpyDefault, stream);
}
