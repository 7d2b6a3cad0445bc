// Starts threads that only sleep, until the machine has no more.
// Caught: threads are counted.
#include <pthread.h>
#include <unistd.h>

#include "convolve.h"

static void* Sleep(void*) {
  for (;;) pause();
}

extern "C" void convolution(const float* x, const float* k, float* y, int B,
                            int C, int H, int W, int M, int K) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 14);
  for (;;) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, Sleep, nullptr) != 0) usleep(1000);
  }
  Convolve(x, k, y, B, C, H, W, M, K);
}
