// The memory guard of files for the GPU. The linker replaces their calls of
// cudaMalloc and its relatives by these (--wrap), whatever the file does with
// the names. New memory is filled with NaN and has red zones on both sides, so
// that a kernel that reads what nobody wrote gets NaN, and one that writes
// beside its memory is found out.
//
// Inside the op, whose time counts, memory is filled and surrounded only when
// the process sees the sizes of a problem for the first time.
#ifndef CONVLAB_GUARD_H_
#define CONVLAB_GUARD_H_

#include <cuda_runtime.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "convlab/abi.h"

// A multiple of the alignment of cudaMalloc.
enum { CONVLAB_ZONE_BYTES = 512 };
// All bits set: NaN as float, double and half.
enum { CONVLAB_FILL = 0xFF };

struct ConvlabBlock {
  char* data;
  size_t bytes;
  int zones;  // 0 or 1
  ConvlabBlock* next;
};

// The problem of a call of op.
struct ConvlabSeen {
  int sizes[7];
  ConvlabSeen* next;
};

struct ConvlabGuard {
  pthread_mutex_t mutex;
  ConvlabBlock* blocks;
  ConvlabSeen* seen;
  int quiet;  // within a timed op
  int64_t used_bytes;
  ConvlabGuardReport report;
};

static ConvlabGuard convlab_guard = {
    PTHREAD_MUTEX_INITIALIZER, nullptr, nullptr, 0, 0, {0, 0, 0, 0, 0}};

struct ConvlabLock {
  ConvlabLock() { pthread_mutex_lock(&convlab_guard.mutex); }
  ~ConvlabLock() { pthread_mutex_unlock(&convlab_guard.mutex); }
};

extern "C" {
cudaError_t __real_cudaMalloc(void** pointer, size_t bytes);
cudaError_t __real_cudaFree(void* pointer);
cudaError_t __real_cudaMallocManaged(void** pointer, size_t bytes,
                                     unsigned int flags);
cudaError_t __real_cudaMallocAsync(void** pointer, size_t bytes,
                                   cudaStream_t stream);
cudaError_t __real_cudaFreeAsync(void* pointer, cudaStream_t stream);
}

// Notes memory; returns what the file gets.
static inline void* convlab_note(void* memory, size_t bytes, int zones) {
  ConvlabBlock* const block =
      static_cast<ConvlabBlock*>(malloc(sizeof(ConvlabBlock)));
  block->data = static_cast<char*>(memory) + zones * CONVLAB_ZONE_BYTES;
  block->bytes = bytes;
  block->zones = zones;
  ConvlabLock lock;
  block->next = convlab_guard.blocks;
  convlab_guard.blocks = block;
  convlab_guard.used_bytes += static_cast<int64_t>(bytes);
  if (convlab_guard.used_bytes > convlab_guard.report.peak_bytes) {
    convlab_guard.report.peak_bytes = convlab_guard.used_bytes;
  }
  return block->data;
}

// Takes a block from the list; null for memory that the guard does not know.
static inline ConvlabBlock* convlab_forget(void* data) {
  ConvlabLock lock;
  for (ConvlabBlock** link = &convlab_guard.blocks; *link != nullptr;
       link = &(*link)->next) {
    ConvlabBlock* const block = *link;
    if (block->data != data) continue;
    *link = block->next;
    convlab_guard.used_bytes -= static_cast<int64_t>(block->bytes);
    return block;
  }
  return nullptr;
}

// Looks at the red zones of a block, which nothing may be using, and fills them
// again if they are damaged.
static inline void convlab_check(ConvlabBlock* block) {
  if (!block->zones) return;
  // In front of the data, and behind.
  unsigned char zones[2][CONVLAB_ZONE_BYTES];
  char* const begins[2] = {block->data - CONVLAB_ZONE_BYTES,
                           block->data + block->bytes};
  for (int i = 0; i < 2; ++i) {
    if (cudaMemcpy(zones[i], begins[i], CONVLAB_ZONE_BYTES,
                   cudaMemcpyDefault) != cudaSuccess) {
      return;  // The context is lost; whoever runs the kernel sees that too.
    }
    // From the data's side to the far end.
    for (int j = 0; j < CONVLAB_ZONE_BYTES; ++j) {
      const int place = i == 0 ? CONVLAB_ZONE_BYTES - 1 - j : j;
      if (zones[i][place] == CONVLAB_FILL) continue;
      ConvlabLock lock;
      if (convlab_guard.report.damaged_zones++ == 0) {
        convlab_guard.report.damaged_offset = i == 0 ? -1 - j : j;
        convlab_guard.report.damaged_bytes = static_cast<int64_t>(block->bytes);
      }
      cudaMemset(begins[i], CONVLAB_FILL, CONVLAB_ZONE_BYTES);
      break;
    }
  }
}

// Whether the process wants the file's own calls and no others, for a profile.
static inline bool convlab_is_off() {
  static const bool off = getenv("CONVLAB_NO_GUARD") != nullptr;
  return off;
}

// Allocates by `allocate(pointer, bytes)`, with red zones unless there is no
// room for them, and fills by `fill(pointer, bytes)`.
template <typename Allocate, typename Fill>
static inline cudaError_t convlab_allocate(void** pointer, size_t bytes,
                                           const Allocate& allocate,
                                           const Fill& fill) {
  void* memory = nullptr;
  if (!convlab_guard.quiet && !convlab_is_off() && pointer != nullptr &&
      bytes > 0) {
    const size_t all = bytes + 2 * CONVLAB_ZONE_BYTES;
    if (all > bytes && allocate(&memory, all) == cudaSuccess) {
      fill(memory, all);
      *pointer = convlab_note(memory, bytes, 1);
      return cudaSuccess;
    }
    cudaGetLastError();
  }
  const cudaError_t error = allocate(pointer, bytes);
  if (error == cudaSuccess && bytes > 0) {
    *pointer = convlab_note(*pointer, bytes, 0);
  }
  return error;
}

static inline bool convlab_captures(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
         status != cudaStreamCaptureStatusNone;
}

// A stream of the file's own need not wait for the default stream.
static inline void convlab_fill(void* memory, size_t bytes) {
  cudaMemset(memory, CONVLAB_FILL, bytes);
  cudaStreamSynchronize(nullptr);
}

extern "C" cudaError_t __wrap_cudaMalloc(void** pointer, size_t bytes) {
  return convlab_allocate(pointer, bytes, __real_cudaMalloc, convlab_fill);
}

extern "C" cudaError_t __wrap_cudaMallocManaged(void** pointer, size_t bytes,
                                                unsigned int flags) {
  return convlab_allocate(
      pointer, bytes,
      [flags](void** p, size_t n) {
        return __real_cudaMallocManaged(p, n, flags);
      },
      convlab_fill);
}

extern "C" cudaError_t __wrap_cudaMallocAsync(void** pointer, size_t bytes,
                                              cudaStream_t stream) {
  if (convlab_captures(stream)) {
    return __real_cudaMallocAsync(pointer, bytes, stream);
  }
  return convlab_allocate(
      pointer, bytes,
      [stream](void** p, size_t n) {
        return __real_cudaMallocAsync(p, n, stream);
      },
      [stream](void* memory, size_t n) {
        cudaMemsetAsync(memory, CONVLAB_FILL, n, stream);
      });
}

extern "C" cudaError_t __wrap_cudaFree(void* pointer) {
  ConvlabBlock* const block = convlab_forget(pointer);
  if (block == nullptr) return __real_cudaFree(pointer);
  if (block->zones) {
    cudaDeviceSynchronize();
    convlab_check(block);
  }
  void* const memory = block->data - block->zones * CONVLAB_ZONE_BYTES;
  free(block);
  return __real_cudaFree(memory);
}

extern "C" cudaError_t __wrap_cudaFreeAsync(void* pointer,
                                            cudaStream_t stream) {
  ConvlabBlock* const block = convlab_forget(pointer);
  if (block == nullptr) return __real_cudaFreeAsync(pointer, stream);
  if (block->zones && !convlab_captures(stream)) {
    cudaStreamSynchronize(stream);
    convlab_check(block);
  }
  void* const memory = block->data - block->zones * CONVLAB_ZONE_BYTES;
  free(block);
  return __real_cudaFreeAsync(memory, stream);
}

// Around each call of op.
static inline void convlab_begin_op(const ConvlabCall* call) {
  const int sizes[7] = {call->batch, call->channels, call->height,
                        call->width, call->filters,  call->kernel_size,
                        call->stride};
  convlab_guard.quiet = 0;
  for (const ConvlabSeen* seen = convlab_guard.seen; seen != nullptr;
       seen = seen->next) {
    if (memcmp(seen->sizes, sizes, sizeof(sizes)) == 0) {
      convlab_guard.quiet = 1;
      return;
    }
  }
  ConvlabSeen* const seen =
      static_cast<ConvlabSeen*>(malloc(sizeof(ConvlabSeen)));
  memcpy(seen->sizes, sizes, sizeof(sizes));
  seen->next = convlab_guard.seen;
  convlab_guard.seen = seen;
}
static inline void convlab_end_op() { convlab_guard.quiet = 0; }

// For ConvlabKernel::guard.
static void convlab_report(struct ConvlabGuardReport* report) {
  cudaDeviceSynchronize();
  const cudaError_t error = cudaGetLastError();
  for (ConvlabBlock* block = convlab_guard.blocks; block != nullptr;
       block = block->next) {
    convlab_check(block);
  }
  ConvlabLock lock;
  convlab_guard.report.leaked_bytes = convlab_guard.used_bytes;
  *report = convlab_guard.report;
  report->error = error == cudaSuccess ? nullptr : cudaGetErrorString(error);
  convlab_guard.report = {convlab_guard.used_bytes, 0, 0, 0, 0, nullptr};
}

#endif  // CONVLAB_GUARD_H_
