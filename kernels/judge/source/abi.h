/* The C interface between the library of a contributed kernel and the process
 * that runs it. The adapter that kernels/judge/source generates round a
 * contributed file exports convlab_kernel(); process.h describes who calls it.
 * The header is C, free of CUDA types, and is compiled into both sides. */
#ifndef KERNELS_JUDGE_SOURCE_ABI_H_
#define KERNELS_JUDGE_SOURCE_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rises with every change of this file. */
#define CONVLAB_KERNEL_ABI 1

/* One convolution: y[b,m,h,w] = sum of x[b,c,h*S+p,w*S+q] * k[m,c,p,q], where S
 * is the stride; float32, NCHW, MCKK, NCHW. */
struct ConvlabCall {
  int batch, channels, height, width, filters, kernel_size, stride;
  /* In host memory; always set. */
  const float* host_x;
  const float* host_k;
  float* host_y;
  /* In the memory of the current device. For CONVLAB_DEVICE_TENSORS the process
   * sets them; for CONVLAB_HOST_TENSORS the file's own prolog may. */
  float* device_x;
  float* device_k;
  float* device_y;
  /* A cudaStream_t for files that take a stream; otherwise null. */
  void* stream;
};

enum ConvlabTensors {
  /* The file takes tensors in host memory and copies them itself, if it uses a
   * GPU. `prolog` and `epilog` may be null. */
  CONVLAB_HOST_TENSORS = 0,
  /* `op` takes tensors in device memory, which the process allocates, fills and
   * reads. `prolog` and `epilog` are null. */
  CONVLAB_DEVICE_TENSORS = 1,
};

/* What the adapter's memory guard saw. The guard replaces the file's calls of
 * cudaMalloc and cudaFree: it fills new memory with NaN and surrounds it with
 * red zones. */
struct ConvlabGuardReport {
  int64_t peak_bytes;     /* of device memory that was allocated at one time */
  int64_t leaked_bytes;   /* allocated and not freed so far */
  int64_t damaged_zones;  /* red zones that were overwritten */
  int64_t damaged_offset; /* bytes from the end (>= 0) or the begin (< 0) of the
                             allocation to the first damage */
  int64_t damaged_bytes;  /* the size of that allocation */
  const char* error;      /* of the last CUDA call or launch that failed, as
                             cudaGetErrorString has it, or null */
};

struct ConvlabKernel {
  int abi;           /* CONVLAB_KERNEL_ABI */
  const char* name;  /* of the interface, as in interface.h */
  int uses_gpu;      /* 0 or 1 */
  int tensors;       /* a ConvlabTensors */
  int zeroed_output; /* 1: y holds zeros before `op`, as the file's term
                        promised; 0: it holds NaN */
  void (*prolog)(struct ConvlabCall* call);
  void (*op)(struct ConvlabCall* call);
  void (*epilog)(struct ConvlabCall* call);
  /* Null if the file uses no GPU. */
  void (*guard)(struct ConvlabGuardReport* report);
};

/* Never returns null. */
const struct ConvlabKernel* convlab_kernel(void);

#ifdef __cplusplus
}
#endif

#endif /* KERNELS_JUDGE_SOURCE_ABI_H_ */
