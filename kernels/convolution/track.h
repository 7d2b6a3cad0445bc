// The purpose of a variant. This header is small, as problem.h is.
#ifndef KERNELS_CONVOLUTION_TRACK_H_
#define KERNELS_CONVOLUTION_TRACK_H_

namespace convlab {

// Reports show variants by track.
enum class Track {
  kLesson,      // a step of the path that a student reads from top to bottom
  kSpecialty,   // for one purpose: few images, a precision, a technique
  kProduction,  // a candidate for any problem that it takes
};

}  // namespace convlab

#endif  // KERNELS_CONVOLUTION_TRACK_H_
