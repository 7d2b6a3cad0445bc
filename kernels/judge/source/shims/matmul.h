// The course's matrix multiplication, written anew: C = A B, row-major, float.
// Launch it with blocks of MATMUL_TILE_WIDTH x MATMUL_TILE_WIDTH threads; x
// runs along the columns of C.
#ifndef CONVLAB_MATMUL_H_
#define CONVLAB_MATMUL_H_

#define MATMUL_TILE_WIDTH 16

__global__ void matrixMultiplyShared(const float* A, const float* B, float* C,
                                     int numARows, int numAColumns,
                                     int numBRows, int numBColumns,
                                     int numCRows, int numCColumns);

#ifdef CONVLAB_DEFINE_MATMUL
__global__ void matrixMultiplyShared(const float* A, const float* B, float* C,
                                     int numARows, int numAColumns,
                                     int numBRows, int numBColumns,
                                     int numCRows, int numCColumns) {
  constexpr int kTile = 16;
  __shared__ float a[kTile][kTile];
  __shared__ float b[kTile][kTile];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int row = blockIdx.y * kTile + ty;
  const int column = blockIdx.x * kTile + tx;
  float sum = 0;
  for (int begin = 0; begin < numAColumns; begin += kTile) {
    a[ty][tx] = row < numARows && begin + tx < numAColumns
                    ? A[(size_t)row * numAColumns + begin + tx]
                    : 0;
    b[ty][tx] = column < numBColumns && begin + ty < numBRows
                    ? B[(size_t)(begin + ty) * numBColumns + column]
                    : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += a[ty][i] * b[i][tx];
    __syncthreads();
  }
  if (row < numCRows && column < numCColumns) {
    C[(size_t)row * numCColumns + column] = sum;
  }
}
#endif

#endif  // CONVLAB_MATMUL_H_
