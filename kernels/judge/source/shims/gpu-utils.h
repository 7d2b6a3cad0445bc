// The course's kernels that mark the begin and the end of a layer in a profile.
#ifndef CONVLAB_GPU_UTILS_H_
#define CONVLAB_GPU_UTILS_H_

static __global__ void convlab_marker() {}

class GPU_Utils {
 public:
  void insert_pre_barrier_kernel() { mark(); }
  void insert_post_barrier_kernel() { mark(); }

 private:
  static void mark() {
    convlab_marker<<<1, 1>>>();
    cudaDeviceSynchronize();
  }
};

#endif  // CONVLAB_GPU_UTILS_H_
