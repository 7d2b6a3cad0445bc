// The accuracy of a convolution. This header is small because nvcc parses it
// once per architecture; accuracy.h has the bounds of the classes.
#ifndef COMMON_ACCURACY_ACCURACY_CLASS_H_
#define COMMON_ACCURACY_ACCURACY_CLASS_H_

namespace convlab {

// From the tightest on; a variant belongs to the tightest class that it meets.
// kFp32 is a promise for each output, on all data (contract.h). The others
// bound the relative L2 error of a whole result on ordinary data: kFp32Normwise
// is what float32 arithmetic gives to algorithms that add values of different
// outputs, as transforms do (Higham, Accuracy and Stability of Numerical
// Algorithms: componentwise and normwise bounds).
enum class AccuracyClass { kFp32, kFp32Normwise, kTf32, kFp16, kBf16 };

}  // namespace convlab

#endif  // COMMON_ACCURACY_ACCURACY_CLASS_H_
