// How exact a variant is. Light on purpose, as problem.h is.
#ifndef KERNELS_CONVOLUTION_ACCURACY_H_
#define KERNELS_CONVOLUTION_ACCURACY_H_

namespace convlab {

// By the relative L2 error against float64 on random inputs; a variant belongs
// to the tightest class that it meets.
enum class AccuracyClass { kFp32, kTf32, kFp16, kBf16 };

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_ACCURACY_H_
