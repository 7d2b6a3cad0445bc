// Kernels for the tests of the judge: functions in the judge's own process.
#ifndef KERNELS_JUDGE_JUDGING_TESTING_H_
#define KERNELS_JUDGE_JUDGING_TESTING_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/network/network.h"
#include "common/parallel/parallel.h"
#include "gtest/gtest.h"
#include "kernels/judge/judging.h"

namespace convlab {

// One op on the tensors of a call. Its status is the end of the process.
using Op = std::function<absl::Status(const Problem& problem, const float* x,
                                      const float* k, float* y)>;
// Loads the kernel into a new process: state begins anew.
using Load = std::function<Op()>;

// What the process says of a call besides its output.
using Tell = std::function<void(const KernelCall& call, CallResult& result)>;

class FunctionProcess : public KernelProcess {
 public:
  FunctionProcess(Op op, Op late, Tell tell)
      : op_(std::move(op)), late_(std::move(late)), tell_(std::move(tell)) {}

  absl::StatusOr<SharedTensors> Map(const Problem& problem) override {
    x_.resize(problem.input_elements());
    k_.resize(problem.kernel_elements());
    y_.resize(problem.output_elements());
    return SharedTensors{absl::MakeSpan(x_), absl::MakeSpan(k_),
                         absl::MakeSpan(y_)};
  }

  absl::StatusOr<CallResult> Run(const KernelCall& call) override {
    CallResult result;
    for (int i = 0; i < call.warm_ops + call.timed_ops; ++i) {
      const absl::Status status =
          op_(call.problem, x_.data(), k_.data(), y_.data());
      if (!status.ok()) return status;
      if (i >= call.warm_ops) result.op_ns.push_back(1'000'000);
    }
    if (late_ && call.linger_seconds > 0) {
      const absl::Status status =
          late_(call.problem, x_.data(), k_.data(), y_.data());
      if (!status.ok()) return status;
    }
    result.whole_ns = 2'000'000;
    if (tell_) tell_(call, result);
    return result;
  }

  absl::StatusOr<Activities> Traced() override { return Activities(); }
  void Finish() override {}
  std::string Printed() const override { return "Correctness: 1.0\n"; }
  std::string Protection() const override { return "none"; }

 private:
  const Op op_, late_;
  const Tell tell_;
  std::vector<float> x_, k_, y_;
};

struct FunctionKernel {
  explicit FunctionKernel(Load l) : load(std::move(l)) {}

  Load load;
  Op late;  // what threads do if the process may go on after the op
  bool gpu = false;
  bool has_prolog = false;
  bool quick = true;
  Tell tell;
  std::string network = "sp19";
  int64_t batch = 12;
  double seconds = 60;  // for each call
  HardLimits limits;
};

inline Verdict JudgeFunction(const FunctionKernel& kernel) {
  static Workers* const workers = new Workers(2);
  JudgedKernel judged;
  judged.start = [&](const ProcessOptions&) {
    return std::make_unique<FunctionProcess>(kernel.load(), kernel.late,
                                             kernel.tell);
  };
  judged.has_prolog = kernel.has_prolog;
  judged.limits = kernel.limits;
  JudgeOptions options;
  options.network = *FindNetwork(kernel.network);
  options.batch = kernel.batch;
  options.quick = kernel.quick;
  options.samples = 3;
  options.huge = false;
  options.seed = 20261122;
  options.process.gpu = kernel.gpu;
  options.process.seconds = kernel.seconds;
  const auto verdict = JudgeKernel(judged, options, *workers);
  EXPECT_TRUE(verdict.ok()) << verdict.status();
  return verdict.ok() ? *verdict : Verdict();
}

// Products of x and k as the kernel sees them.
struct Arithmetic {
  std::function<float(float)> operand = nullptr;  // rounds an operand
  std::function<float(float)> sum = nullptr;      // rounds partial sums
};

// The convolution in float32, or less.
inline void Convolve(const Problem& n, const float* x, const float* k, float* y,
                     const Arithmetic& arithmetic = {}) {
  const int64_t size = n.kernel_size;
  std::vector<float> inputs(x, x + n.input_elements());
  std::vector<float> weights(k, k + n.kernel_elements());
  if (arithmetic.operand) {
    for (float& value : inputs) value = arithmetic.operand(value);
    for (float& value : weights) value = arithmetic.operand(value);
  }
  const int64_t columns = n.output_width();
  std::vector<float> row(columns);
  for (int64_t plane = 0; plane < n.batch * n.filters; ++plane) {
    const int64_t b = plane / n.filters, m = plane % n.filters;
    for (int64_t h = 0; h < n.output_height(); ++h) {
      row.assign(columns, 0);
      const float* weight = weights.data() + m * n.channels * size * size;
      for (int64_t c = 0; c < n.channels; ++c) {
        for (int64_t p = 0; p < size; ++p) {
          const float* in = inputs.data() +
                            ((b * n.channels + c) * n.height + h + p) * n.width;
          for (int64_t q = 0; q < size; ++q, ++weight) {
            for (int64_t w = 0; w < columns; ++w) row[w] += *weight * in[w + q];
          }
          if (!arithmetic.sum) continue;
          for (float& value : row) value = arithmetic.sum(value);
        }
      }
      std::memcpy(y + (plane * n.output_height() + h) * columns, row.data(),
                  columns * sizeof(float));
    }
  }
}

// A kernel without state.
inline Load Stateless(Op op) {
  return [op = std::move(op)] { return op; };
}
inline Op Right(const Arithmetic& arithmetic = {}) {
  return [arithmetic](const Problem& problem, const float* x, const float* k,
                      float* y) {
    Convolve(problem, x, k, y, arithmetic);
    return absl::OkStatus();
  };
}
// The right result, which `change` makes wrong.
inline Op Changed(
    std::function<absl::Status(const Problem& problem, float* y)> change) {
  return [change = std::move(change)](const Problem& problem, const float* x,
                                      const float* k, float* y) {
    Convolve(problem, x, k, y);
    return change(problem, y);
  };
}

// The kernel is right where `holds`, and otherwise gives zeros.
inline Load RightIf(const std::function<bool(const Problem&)>& holds) {
  return Stateless(Changed([holds](const Problem& problem, float* y) {
    if (!holds(problem)) std::fill_n(y, problem.output_elements(), 0.0f);
    return absl::OkStatus();
  }));
}

// Rounds to so many bits after the leading one; beyond `largest` infinite, and
// with steps of no less than `step`, as narrow types have them.
inline float Round(float value, int bits, float largest, float step) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  if ((word & 0x7f800000) == 0x7f800000) return value;
  const int drop = 23 - bits;
  word += (1u << (drop - 1)) - 1 + (word >> drop & 1);
  word &= ~((1u << drop) - 1);
  std::memcpy(&value, &word, sizeof word);
  if (value > largest || value < -largest) return value * HUGE_VALF;
  if (step > 0 && std::abs(value) < step * static_cast<float>(1 << bits)) {
    return std::nearbyint(value / step) * step;
  }
  return value;
}
inline float ToHalf(float value) { return Round(value, 10, 65504, 0x1p-24f); }

}  // namespace convlab

#endif  // KERNELS_JUDGE_JUDGING_TESTING_H_
