// The accuracy of a convolution. This header is small because nvcc parses it
// once per architecture; accuracy.h has the bounds of the classes.
#ifndef COMMON_ACCURACY_ACCURACY_CLASS_H_
#define COMMON_ACCURACY_ACCURACY_CLASS_H_

namespace convlab {

// Classes bound the relative L2 error against float64 on random inputs; a
// variant belongs to the tightest class that it meets.
enum class AccuracyClass { kFp32, kTf32, kFp16, kBf16 };

}  // namespace convlab

#endif  // COMMON_ACCURACY_ACCURACY_CLASS_H_
