/* Smooths an image: one filter of 3x3 ninths, with padding, on the CPU. */
#include <convlab/convlab.h>
#include <stdio.h>

enum { kSize = 6 };

int main(void) {
  static float x[kSize * kSize], y[kSize * kSize], weights[9];
  convlab_problem problem = CONVLAB_PROBLEM_INIT;
  convlab_options options = CONVLAB_OPTIONS_INIT;
  convlab_info info = CONVLAB_INFO_INIT;
  convlab_plan* plan = NULL;
  int i;
  for (i = 0; i < kSize * kSize; ++i) x[i] = 9.0f;
  for (i = 0; i < 9; ++i) weights[i] = 1.0f / 9;
  problem.height = problem.width = kSize;
  problem.kernel_height = problem.kernel_width = 3;
  problem.padding_top = problem.padding_bottom = 1;
  problem.padding_left = problem.padding_right = 1;
  if (convlab_plan_create(&problem, &options, &plan) != CONVLAB_OK ||
      convlab_plan_query(plan, &info) != CONVLAB_OK ||
      convlab_run(plan, x, weights, NULL, y, NULL, 0, NULL) != CONVLAB_OK) {
    fprintf(stderr, "%s\n", convlab_last_error());
    convlab_plan_destroy(plan);
    return 1;
  }
  /* A corner sees four pixels, the inside nine. */
  printf("convlab %s, kernel %s: corner %.3f, inside %.3f\n",
         convlab_version(), info.kernel, y[0], y[kSize + 1]);
  convlab_plan_destroy(plan);
  return 0;
}
