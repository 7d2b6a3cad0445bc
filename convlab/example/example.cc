// A first layer on the CPU: 3 channels, stride 2, bias, ReLU.
#include <convlab/convlab.hpp>
#include <cstdio>
#include <vector>

int main() {
  convlab_problem problem = CONVLAB_PROBLEM_INIT;
  problem.batch = 2, problem.channels = 3;
  problem.height = problem.width = 32;
  problem.filters = 8;
  problem.kernel_height = problem.kernel_width = 5;
  problem.stride_height = problem.stride_width = 2;
  problem.has_bias = 1, problem.activation = CONVLAB_RELU;
  try {
    const convlab::Plan plan(problem);
    const convlab_info& info = plan.info();
    const std::vector<float> x(info.input_bytes / sizeof(float), 1);
    const std::vector<float> weights(info.weight_bytes / sizeof(float), 1);
    const std::vector<float> bias(problem.filters, 0.5f);
    std::vector<float> y(info.output_bytes / sizeof(float));
    plan.Run(x.data(), weights.data(), bias.data(), y.data());
    std::printf("convlab %s, kernel %s: output %dx%d, first %.1f\n",
                convlab_version(), info.kernel,
                static_cast<int>(info.output_height),
                static_cast<int>(info.output_width), y[0]);
  } catch (const convlab::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
