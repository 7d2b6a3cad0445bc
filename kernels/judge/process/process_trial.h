// Runs kernel processes in tests.
#ifndef KERNELS_JUDGE_PROCESS_PROCESS_TRIAL_H_
#define KERNELS_JUDGE_PROCESS_PROCESS_TRIAL_H_

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "kernels/convolution/problem.h"
#include "kernels/judge/process/process.h"

namespace convlab {

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

// A call of one problem, its output, and what became of it.
struct Trial {
  absl::Status status;
  CallResult result;
  int wrong = 0;  // elements of the output
  std::string printed;
  std::string protection;
};

inline void Fill(const SharedTensors& tensors, int seed) {
  for (size_t i = 0; i < tensors.x.size(); ++i) {
    tensors.x[i] = static_cast<float>((i * 7 + seed) % 13) - 6;
  }
  for (size_t i = 0; i < tensors.k.size(); ++i) {
    tensors.k[i] = static_cast<float>((i * 5 + seed) % 7) - 3;
  }
  for (float& y : tensors.y) y = kPoison;
}

inline int CountWrong(const Problem& p, const SharedTensors& t) {
  int wrong = 0;
  for (int64_t i = 0; i < p.output_elements(); ++i) {
    const int64_t w = i % p.output_width();
    const int64_t h = i / p.output_width() % p.output_height();
    const int64_t m = i / (p.output_width() * p.output_height()) % p.filters;
    const int64_t b = i / (p.output_width() * p.output_height() * p.filters);
    float sum = 0;
    for (int64_t c = 0; c < p.channels; ++c) {
      for (int64_t r = 0; r < p.kernel_size; ++r) {
        for (int64_t q = 0; q < p.kernel_size; ++q) {
          sum +=
              t.x[((b * p.channels + c) * p.height + h + r) * p.width + w + q] *
              t.k[((m * p.channels + c) * p.kernel_size + r) * p.kernel_size +
                  q];
        }
      }
    }
    wrong += !(t.y[i] == sum);
  }
  return wrong;
}

inline Trial RunOnce(KernelProcess& process, const Problem& problem, int seed,
                     int warm_ops = 0, int timed_ops = 1) {
  Trial trial;
  trial.protection = process.Protection();
  const auto tensors = process.Map(problem);
  trial.status = tensors.status();
  if (!tensors.ok()) return trial;
  Fill(*tensors, seed);
  KernelCall call;
  call.problem = problem;
  call.warm_ops = warm_ops;
  call.timed_ops = timed_ops;
  auto result = process.Run(call);
  trial.printed = process.Printed();
  trial.status = result.status();
  if (!result.ok()) return trial;
  trial.result = *std::move(result);
  trial.wrong = CountWrong(problem, *tensors);
  return trial;
}

}  // namespace convlab

#endif  // KERNELS_JUDGE_PROCESS_PROCESS_TRIAL_H_
