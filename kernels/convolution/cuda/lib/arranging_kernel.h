// A kernel that arranges its filters before it convolves with them, as those do
// whose operands are words of halves. Run does both. Filters that stay are
// arranged once, and then RunPrepared is the convolution alone.
#ifndef KERNELS_CONVOLUTION_CUDA_LIB_ARRANGING_KERNEL_H_
#define KERNELS_CONVOLUTION_CUDA_LIB_ARRANGING_KERNEL_H_

#include <cstdint>

#include "common/math/rounding.h"
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {

// What is known of a filter once it is arranged.
struct ScaledFilter {
  int exponent;  // of its scale, or kNotScalable
  int lossy;     // weights of which halves lose too much
  // Whether most weights have one sign, or those with most of the magnitude.
  bool one_signed;
};

// A tile of which not all outputs of these filters are certain.
struct DoubtfulTile {
  int64_t index;
  int first_filter, end_filter;
  int exponent;  // that its inputs were scaled by, or kNotScalable
  int lossy;     // whether some of its inputs are
};

// Filters in the order of a product's kernel, on the device.
struct ArrangedFilters {
  const float* k;          // as they are
  ScaledFilter* known;     // of each
  char* data;              // arranged
  DoubtfulTile* doubtful;  // the lists of the convolution's blocks
  // Whether the kernel before in the stream arranges them: the convolution may
  // overlap with it.
  bool just_now;
};

class ArrangingKernel : public Kernel {
 public:
  using Kernel::Kernel;

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) final {
    ArrangedFilters filters = At(arranged_.as<char>(), k);
    RETURN_IF_FAILED(Arrange(filters, stream));
    filters.just_now = true;
    return Convolve(x, filters, y, stream);
  }

  // Outputs are mended by the filters as they are, of which a copy stays behind
  // the arranged ones.
  int64_t filter_bytes() const final { return copy_at() + copy_bytes(); }

  Error PrepareFilters(const float* k, void* filters,
                       cudaStream_t stream) final {
    char* const memory = static_cast<char*>(filters);
    RETURN_IF_FAILED(Arrange(At(memory, k), stream));
    RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(memory + copy_at(), k, copy_bytes(),
                                         cudaMemcpyDeviceToDevice, stream));
    return {};
  }

  Error RunPrepared(const float* x, const void* filters, float* y,
                    cudaStream_t stream) final {
    char* const memory = const_cast<char*>(static_cast<const char*>(filters));
    const auto* const k = reinterpret_cast<const float*>(memory + copy_at());
    return Convolve(x, At(memory, k), y, stream);
  }

 protected:
  // Called once, by Prepare: for `filters` filters, which fill the groups, so
  // many bytes of them arranged, and `tiles` tiles: blocks times the most that
  // one has.
  void ReserveFilters(int64_t filters, int64_t bytes, int64_t tiles) {
    known_bytes_ =
        RoundUp(filters * sizeof(ScaledFilter), KernelMemory::kAlignment);
    data_bytes_ = RoundUp(bytes, KernelMemory::kAlignment);
    arranged_.Reserve(copy_at());
    doubtful_.Reserve(tiles * sizeof(DoubtfulTile));
  }

  // Queues the arrangement of filters.k.
  virtual Error Arrange(const ArrangedFilters& filters,
                        cudaStream_t stream) = 0;
  // Queues the convolution, which does not write the arranged filters.
  virtual Error Convolve(const float* x, const ArrangedFilters& filters,
                         float* y, cudaStream_t stream) = 0;

 private:
  ArrangedFilters At(char* memory, const float* k) const {
    ArrangedFilters filters = {};
    filters.k = k;
    filters.known = reinterpret_cast<ScaledFilter*>(memory);
    filters.data = memory + known_bytes_;
    filters.doubtful = doubtful_.as<DoubtfulTile>();
    return filters;
  }
  int64_t copy_at() const { return known_bytes_ + data_bytes_; }
  int64_t copy_bytes() const {
    return problem_.kernel_elements() * static_cast<int64_t>(sizeof(float));
  }

  int64_t known_bytes_ = 0, data_bytes_ = 0;
  Workspace arranged_{memory_}, doubtful_{memory_};
};

}  // namespace convlab::cuda

#endif  // KERNELS_CONVOLUTION_CUDA_LIB_ARRANGING_KERNEL_H_
