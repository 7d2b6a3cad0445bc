/* A program as the header of version 0.1 compiled it: the library of a later
 * version runs it. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct problem {
  size_t struct_size;
  int64_t batch, channels, height, width;
  int64_t filters, kernel_height, kernel_width;
  int64_t stride_height, stride_width;
  int64_t padding_top, padding_bottom, padding_left, padding_right;
  int32_t has_bias, activation, pool_size, pool_stride, pool_ceil, format;
} problem;

typedef struct options {
  size_t struct_size;
  int32_t device, threads, accuracy, flags;
  const char* kernel;
} options;

typedef struct info {
  size_t struct_size;
  int64_t workspace_bytes, output_height, output_width;
  int64_t input_bytes, weight_bytes, output_bytes;
  double estimated_ns;
  int32_t accuracy, capturable;
  const char* kernel;
} info;

struct convlab_plan;
int32_t convlab_plan_create(const problem*, const options*,
                            struct convlab_plan**);
int32_t convlab_plan_query(const struct convlab_plan*, info*);
int32_t convlab_run(struct convlab_plan*, const void*, const void*, const void*,
                    void*, void*, size_t, void*);
void convlab_plan_destroy(struct convlab_plan*);
const char* convlab_last_error(void);

int main(void) {
  const problem asked = {
      sizeof(problem), 1, 1, 3, 3, 1, 2, 2, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0};
  const options on_cpu = {sizeof(options), -1, 1, 0, 0, NULL};
  const float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const float weights[4] = {1, 1, 1, 1};
  float y[4] = {0, 0, 0, 0};
  struct convlab_plan* plan = NULL;
  struct {
    info told;
    char behind[64];
  } memory;
  memset(&memory, 0x5a, sizeof(memory));
  memory.told.struct_size = sizeof(info);
  if (sizeof(problem) != 136 || sizeof(options) != 32 || sizeof(info) != 80 ||
      convlab_plan_create(&asked, &on_cpu, &plan) != 0 ||
      convlab_plan_query(plan, &memory.told) != 0 ||
      convlab_run(plan, x, weights, NULL, y, NULL, 0, NULL) != 0) {
    fprintf(stderr, "%s\n", convlab_last_error());
    return 1;
  }
  convlab_plan_destroy(plan);
  if (memory.told.output_width != 2 || memory.behind[0] != 0x5a ||
      memory.behind[63] != 0x5a || y[0] != 12 || y[3] != 28) {
    fprintf(stderr, "another result: %g to %g\n", y[0], y[3]);
    return 1;
  }
  return 0;
}
