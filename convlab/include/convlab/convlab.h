/* Convlab: forward convolutions with few channels, on NVIDIA GPUs and CPUs.
 *
 *   convlab_problem problem = CONVLAB_PROBLEM_INIT;
 *   problem.batch = 64, problem.channels = 3;
 *   problem.height = problem.width = 224;
 *   problem.filters = 64;
 *   problem.kernel_height = problem.kernel_width = 7;
 *   convlab_options options = CONVLAB_OPTIONS_INIT;
 *   options.device = 0;
 *   convlab_plan* plan;
 *   convlab_info info = CONVLAB_INFO_INIT;
 *   if (convlab_plan_create(&problem, &options, &plan) != CONVLAB_OK ||
 *       convlab_plan_query(plan, &info) != CONVLAB_OK) {
 *     fputs(convlab_last_error(), stderr);
 *   }
 *   ... cudaMalloc(&workspace, info.workspace_bytes) ...
 *   convlab_run(plan, x, weights, bias, y, workspace, info.workspace_bytes,
 *               stream);
 *   convlab_plan_destroy(plan);
 *
 * The operation. x is zero-padded at its four sides, then
 *
 *   s[b,m,i,j] = sum over c,p,q of
 *                x[b, c, i*stride_height + p, j*stride_width + q] * w[m,c,p,q]
 *
 * (cross-correlation), and y is s after bias[m], activation and max pooling.
 * All tensors are row-major and without gaps: x is
 * [batch, channels, height, width], w is
 * [filters, channels, kernel_height, kernel_width], bias is [filters], y is
 * [batch, filters, output_height, output_width]. With CONVLAB_NHWC x is
 * [batch, height, width, channels] and y is
 * [batch, output_height, output_width, filters]; w stays as it is. All are
 * float32 or, with CONVLAB_HALF, IEEE half precision. The zeros of the padding
 * are numbers like others: times an infinite weight they are NaN.
 *
 * Accuracy. Plans of CONVLAB_FP32 keep, for each output before the activation,
 * on all data, |y - exact| <= c * 2^-24 * S + n * 2^-149, where S is the sum of
 * the n products' magnitudes and c is 16, or four times what a plain float32
 * loop has if that is more. Infinities and NaN appear where the definition has
 * them. Halves are of CONVLAB_FP16: sums are float32, and rounded when y is
 * stored.
 *
 * Errors. Functions return CONVLAB_OK or an error's code; convlab_last_error
 * has the message. Bad arguments are found before anything is written. An error
 * of the GPU itself may be found by a later call of any library.
 *
 * Threads. All functions may be called from any number of threads at a time,
 * also with one plan, as long as no run uses the workspace or the output of
 * another one that may still be at work, and no plan is destroyed that is in
 * use. No call changes the calling thread's current device. The child of a fork
 * may go on with plans on the CPU, for whose runs in other threads the fork
 * waits; on a GPU, as CUDA itself, it cannot use its parent's.
 *
 * This header is C99 and C++11. Structures begin with their size, so that later
 * versions can add fields: initialize them by the macros. What a call is given
 * stays its caller's; a plan copies the problem and the options, the kernel's
 * name with them. */
#ifndef CONVLAB_CONVLAB_H_
#define CONVLAB_CONVLAB_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONVLAB_VERSION "0.2.0"

/* Error codes. */
typedef int32_t convlab_status;
#define CONVLAB_OK 0
#define CONVLAB_INVALID_ARGUMENT 1 /* the message names it */
#define CONVLAB_UNSUPPORTED 2      /* valid, but no kernel takes it */
#define CONVLAB_NO_DEVICE 3        /* there is no such GPU, or no driver */
#define CONVLAB_OUT_OF_MEMORY 4
#define CONVLAB_DEVICE_ERROR 5 /* a CUDA call failed */

/* Activations. */
#define CONVLAB_NO_ACTIVATION 0
#define CONVLAB_RELU 1
#define CONVLAB_TANH 2

/* Flags of format: channels last; x, weights, bias and y of halves. */
#define CONVLAB_NHWC 1
#define CONVLAB_HALF 2

/* Accuracy classes, from the tightest on. The others allow a relative error in
 * the L2 norm of 1e-6, 5e-4 and 1e-3 on ordinary data. */
#define CONVLAB_FP32 0
#define CONVLAB_FP32_NORMWISE 1
#define CONVLAB_TF32 2
#define CONVLAB_FP16 3

typedef struct convlab_problem {
  size_t struct_size;
  int64_t batch, channels, height, width; /* of x; all at least 1 */
  int64_t filters, kernel_height, kernel_width;
  int64_t stride_height, stride_width; /* 1 to 4 */
  /* Rows above and below, columns to the left and to the right; at least 0. */
  int64_t padding_top, padding_bottom, padding_left, padding_right;
  int32_t has_bias;   /* 0 or 1 */
  int32_t activation; /* CONVLAB_RELU, ... */
  /* Max pooling by squares of pool_size that begin every pool_stride (at least
   * 1) rows and columns, after the activation; both 0: none. */
  int32_t pool_size, pool_stride;
  /* 1: a last window may extend beyond the image; 0: it is left out. */
  int32_t pool_ceil;
  int32_t format; /* 0: NCHW of float32; or a sum of CONVLAB_NHWC, ... */
} convlab_problem;

/* One pixel and one weight, without anything else. */
#define CONVLAB_PROBLEM_INIT                                                 \
  {                                                                          \
    sizeof(convlab_problem), 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0                                                              \
  }

#define CONVLAB_CPU (-1)

/* Flags of options. */
/* The plan may run in a stream that is being captured into a CUDA graph. Some
 * kernels cannot. */
#define CONVLAB_CAPTURABLE 1
/* Runs do not ask the driver whose memory the pointers are. If the plan is
 * capturable, they do not ask either whose stream it is, nor whether the device
 * has been reset. */
#define CONVLAB_TRUST_POINTERS 2

typedef struct convlab_options {
  size_t struct_size;
  int32_t device;   /* a GPU as the CUDA runtime counts, or CONVLAB_CPU */
  int32_t threads;  /* of CONVLAB_CPU; 0: one for each core */
  int32_t accuracy; /* the loosest class that is good enough */
  int32_t flags;
  /* Null: the kernel that is estimated to be the fastest. Otherwise its name:
   * "general", which takes everything, or a variant's of the project. */
  const char* kernel;
} convlab_options;

#define CONVLAB_OPTIONS_INIT \
  { sizeof(convlab_options), CONVLAB_CPU, 0, CONVLAB_FP32, 0, NULL }

typedef struct convlab_info {
  size_t struct_size;
  int64_t workspace_bytes; /* of device memory for a run; 0 on the CPU */
  int64_t output_height, output_width;
  int64_t input_bytes, weight_bytes, output_bytes; /* of x, weights, y */
  double estimated_ns; /* of a run, by its model; 0: it has none */
  int32_t accuracy;    /* the plan's class */
  int32_t capturable;  /* 0 or 1 */
  const char* kernel;  /* valid as long as the plan */
  /* Since 0.2. */
  int64_t prepared_bytes; /* of weights that convlab_prepare_weights writes */
  /* Of cuDNN's best plan for NCHW of float32, or of halves, on this GPU,
   * estimated from what was measured on an H200; 0: no estimate. Where it is
   * less than estimated_ns, cuDNN is probably faster. */
  double estimated_cudnn_ns;
} convlab_info;

#define CONVLAB_INFO_INIT \
  { sizeof(convlab_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0 }

typedef struct convlab_plan convlab_plan;

/* The library's version, CONVLAB_VERSION of its header. This string and those
 * of convlab_status_name stay valid. */
const char* convlab_version(void);

/* "invalid argument"; "unknown status" for a number that is none. */
const char* convlab_status_name(convlab_status status);

/* The message of the calling thread's last call that failed; "" if none has.
 * Valid until the thread's next call that fails. */
const char* convlab_last_error(void);

/* The number of usable GPUs; 0 without a driver. */
int32_t convlab_count_gpus(void);

/* Makes a plan, which convlab_plan_destroy frees, or fails and sets *plan to
 * null. On a GPU it allocates no device memory. */
convlab_status convlab_plan_create(const convlab_problem* problem,
                                   const convlab_options* options,
                                   convlab_plan** plan);
/* Null is ignored. Work that was queued may still be under way. */
void convlab_plan_destroy(convlab_plan* plan);

/* Fills in the fields of *info that lie within info->struct_size. */
convlab_status convlab_plan_query(const convlab_plan* plan, convlab_info* info);

/* Computes y. On a GPU it queues the work in the stream (a cudaStream_t of the
 * plan's device; null: its default stream), neither waits nor allocates device
 * memory, and the tensors are in the device's memory; on the CPU they are in
 * the host's, and y is complete when it returns; the stream means nothing then.
 * Weights and bias are read anew in each run.
 *
 * The pointers are multiples of an element's size. y overlaps nothing else, nor
 * does the workspace: at least info.workspace_bytes at a multiple of 256 bytes,
 * or null if these are 0. bias is null unless the problem has one. */
convlab_status convlab_run(convlab_plan* plan, const void* x,
                           const void* weights, const void* bias, void* y,
                           void* workspace, size_t workspace_bytes,
                           void* stream);

/* Weights that stay, since 0.2. convlab_prepare_weights writes them as the
 * plan's kernel wants them: info.prepared_bytes at a multiple of 256 bytes, in
 * the tensors' memory. It queues its work as convlab_run does; then the weights
 * themselves are not needed any more. What it wrote is for this plan alone. Any
 * number of runs may read it at a time. */
convlab_status convlab_prepare_weights(convlab_plan* plan, const void* weights,
                                       void* prepared, size_t prepared_bytes,
                                       void* stream);
/* convlab_run with prepared weights, for which there is nothing left to do. */
convlab_status convlab_run_prepared(convlab_plan* plan, const void* x,
                                    const void* prepared, const void* bias,
                                    void* y, void* workspace,
                                    size_t workspace_bytes, void* stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CONVLAB_CONVLAB_H_ */
