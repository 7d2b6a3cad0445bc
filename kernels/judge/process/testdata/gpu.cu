// Kernels of the GPU for process_gpu_test.cc: which one this library is, the
// environment variable CONVLAB_TEST_BEHAVIOUR says.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "kernels/judge/source/abi.h"

namespace {

struct Sizes {
  int batch, channels, height, width, filters, size;
  __host__ __device__ int rows() const { return height - size + 1; }
  __host__ __device__ int columns() const { return width - size + 1; }
  __host__ __device__ int64_t outputs() const {
    return int64_t{1} * batch * filters * rows() * columns();
  }
  int64_t inputs() const {
    return int64_t{1} * batch * channels * height * width;
  }
  int64_t weights() const {
    return int64_t{1} * filters * channels * size * size;
  }
};

Sizes Of(const ConvlabCall& c) {
  return {c.batch, c.channels, c.height, c.width, c.filters, c.kernel_size};
}

__global__ void Convolve(Sizes s, const float* x, const float* k, float* y,
                         bool add) {
  const int64_t i = int64_t{1} * blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= s.outputs()) return;
  const int w = i % s.columns();
  const int h = i / s.columns() % s.rows();
  const int m = i / (s.columns() * s.rows()) % s.filters;
  const int b = i / (s.columns() * s.rows() * s.filters);
  float sum = add ? y[i] : 0;
  for (int c = 0; c < s.channels; ++c) {
    for (int p = 0; p < s.size; ++p) {
      for (int q = 0; q < s.size; ++q) {
        sum += x[((b * s.channels + c) * s.height + h + p) * s.width + w + q] *
               k[((m * s.channels + c) * s.size + p) * s.size + q];
      }
    }
  }
  y[i] = sum;
}

__global__ void Store(float* address, float value) { *address = value; }

__global__ void Forever(volatile float* address) {
  while (*address != 12345) {
  }
}

void Launch(const ConvlabCall& c, cudaStream_t stream, bool add = false) {
  const Sizes s = Of(c);
  Convolve<<<(s.outputs() + 255) / 256, 256, 0, stream>>>(
      s, c.device_x, c.device_k, c.device_y, add);
}

cudaStream_t StreamOf(const ConvlabCall& c) {
  return static_cast<cudaStream_t>(c.stream);
}

void HostProlog(ConvlabCall* c) {
  const Sizes s = Of(*c);
  cudaMalloc(&c->device_x, 4 * s.inputs());
  cudaMalloc(&c->device_k, 4 * s.weights());
  cudaMalloc(&c->device_y, 4 * s.outputs());
  cudaMemcpy(c->device_x, c->host_x, 4 * s.inputs(), cudaMemcpyHostToDevice);
  cudaMemcpy(c->device_k, c->host_k, 4 * s.weights(), cudaMemcpyHostToDevice);
}

void HostEpilog(ConvlabCall* c) {
  cudaMemcpy(c->host_y, c->device_y, 4 * Of(*c).outputs(),
             cudaMemcpyDeviceToHost);
  for (float* data : {c->device_x, c->device_k, c->device_y}) cudaFree(data);
}

void Right(ConvlabCall* c) { Launch(*c, StreamOf(*c)); }

const std::map<std::string, void (*)(ConvlabCall*)>& Behaviours() {
  static const std::map<std::string, void (*)(ConvlabCall*)> behaviours = {
      {"right", Right},
      {"default stream", [](ConvlabCall* c) { Launch(*c, nullptr); }},
      {"own stream",  // whose end nobody awaits
       [](ConvlabCall* c) {
         cudaStream_t stream;
         cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
         Launch(*c, stream);
       }},
      {"adds", [](ConvlabCall* c) { Launch(*c, StreamOf(*c), true); }},
      {"nothing", [](ConvlabCall*) {}},
      {"bad launch",
       [](ConvlabCall* c) {
         Convolve<<<1, 4096>>>(Of(*c), c->device_x, c->device_k, c->device_y,
                               false);
       }},
      {"illegal address",
       [](ConvlabCall*) { Store<<<1, 1>>>(reinterpret_cast<float*>(64), 1); }},
      {"forever", [](ConvlabCall* c) { Forever<<<1, 1>>>(c->device_x); }},
      {"write behind y",
       [](ConvlabCall* c) {
         Right(c);
         Store<<<1, 1, 0, StreamOf(*c)>>>(c->device_y + Of(*c).outputs(), 1);
       }},
      {"write before x",
       [](ConvlabCall* c) {
         Right(c);
         Store<<<1, 1, 0, StreamOf(*c)>>>(c->device_x - 2, 1);
       }},
      {"change k",
       [](ConvlabCall* c) {
         Right(c);
         Store<<<1, 1, 0, StreamOf(*c)>>>(c->device_k, 77);
       }},
      {"fork",
       [](ConvlabCall* c) {
         if (fork() == 0) _exit(0);
         Right(c);
       }},
      {"host right", [](ConvlabCall* c) { Launch(*c, nullptr); }},
      {"host in prolog", [](ConvlabCall*) {}},
  };
  return behaviours;
}

}  // namespace

extern "C" const ConvlabKernel* convlab_kernel() {
  static ConvlabKernel kernel = {};
  const char* const name = std::getenv("CONVLAB_TEST_BEHAVIOUR");
  const std::string behaviour = name == nullptr ? "right" : name;
  kernel.abi = CONVLAB_KERNEL_ABI;
  kernel.name = "a library of our own";
  kernel.uses_gpu = 1;
  kernel.tensors = CONVLAB_DEVICE_TENSORS;
  kernel.zeroed_output = behaviour == "adds";
  kernel.op = Behaviours().at(behaviour);
  if (behaviour.rfind("host", 0) == 0) {
    kernel.tensors = CONVLAB_HOST_TENSORS;
    kernel.prolog =
        behaviour == "host right" ? HostProlog : [](ConvlabCall* c) {
          HostProlog(c);
          Launch(*c, nullptr);
        };
    kernel.epilog = HostEpilog;
  }
  return &kernel;
}
