// The general kernel on the CPU.
#ifndef KERNELS_OPERATION_CPU_GENERAL_H_
#define KERNELS_OPERATION_CPU_GENERAL_H_

#include <cstdint>
#include <vector>

#include "common/parallel/parallel.h"
#include "kernels/convolution/cpu/dense_lanes_block.h"
#include "kernels/convolution/cpu/dense_lanes_plan.h"
#include "kernels/operation/operation.h"

namespace convlab::cpu {

// One valid operation, with its memory. The workers must outlive it.
class GeneralConvolution {
 public:
  GeneralConvolution(const Operation& operation, Workers& workers);

  // Brings the filters into the order in which Run reads them; as many floats.
  void PrepareFilters(const float* k, float* filters) const;
  // Computes y, with the epilogue, from prepared filters; `bias` is null unless
  // the operation has one. One call at a time.
  void Run(const float* x, const float* filters, const float* bias, float* y);

 private:
  void ArrangePlane(const float* x, float* arranged) const;
  void ConvolveGroup(const float* image, const float* filters, int64_t first,
                     int worker, const float* bias, float* y);

  const Operation operation_;
  Workers& workers_;
  const dense_lanes::BlockKernel kernel_;
  const bool arranges_;
  // Of an arranged plane: phases, and the size of each.
  const int64_t phases_y_, phases_x_, phase_height_, phase_width_;
  const int64_t group_;   // filters of a block, but for the last
  const int64_t images_;  // arranged at a time
  std::vector<dense_lanes::Span> spans_;
  std::vector<int64_t> taps_;
  std::vector<float> arranged_;  // images
  std::vector<float> sums_;      // of each worker's group, to be pooled
};

}  // namespace convlab::cpu

#endif  // KERNELS_OPERATION_CPU_GENERAL_H_
