// The part of mshadow's interface that course files use, written anew: dense
// tensors in memory that somebody else owns.
#ifndef CONVLAB_MSHADOW_TENSOR_H_
#define CONVLAB_MSHADOW_TENSOR_H_

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#ifdef __CUDACC__
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif

#ifdef __CUDACC__
#define MSHADOW_XINLINE \
  inline __attribute__((always_inline)) __device__ __host__
#else
#define MSHADOW_XINLINE inline __attribute__((always_inline))
#endif
#define MSHADOW_CINLINE inline __attribute__((always_inline))

namespace mshadow {

typedef unsigned index_t;
typedef float default_real_t;

struct cpu {
  static const bool kDevCPU = true;
  static const int kDevMask = 1;
};
struct gpu {
  static const bool kDevCPU = false;
  static const int kDevMask = 2;
};

template <int dimension>
struct Shape {
  static const int kDimension = dimension;
  index_t shape_[dimension];

  MSHADOW_XINLINE index_t& operator[](index_t i) { return shape_[i]; }
  MSHADOW_XINLINE const index_t& operator[](index_t i) const {
    return shape_[i];
  }
  MSHADOW_XINLINE bool operator==(const Shape& other) const {
    for (int i = 0; i < dimension; ++i) {
      if (shape_[i] != other.shape_[i]) return false;
    }
    return true;
  }
  MSHADOW_XINLINE bool operator!=(const Shape& other) const {
    return !(*this == other);
  }
  MSHADOW_XINLINE size_t Size() const {
    size_t size = 1;
    for (int i = 0; i < dimension; ++i) size *= shape_[i];
    return size;
  }
  // All dimensions but the first.
  MSHADOW_XINLINE Shape<dimension - 1> SubShape() const {
    Shape<dimension - 1> sub;
    for (int i = 1; i < dimension; ++i) sub.shape_[i - 1] = shape_[i];
    return sub;
  }
};

MSHADOW_XINLINE Shape<1> Shape1(index_t a) { return {{a}}; }
MSHADOW_XINLINE Shape<2> Shape2(index_t a, index_t b) { return {{a, b}}; }
MSHADOW_XINLINE Shape<3> Shape3(index_t a, index_t b, index_t c) {
  return {{a, b, c}};
}
MSHADOW_XINLINE Shape<4> Shape4(index_t a, index_t b, index_t c, index_t d) {
  return {{a, b, c, d}};
}

template <typename Device>
struct Stream {
  void Wait() {}
};

#ifdef __CUDACC__
template <>
struct Stream<gpu> {
  cudaStream_t stream_ = 0;

  void Wait() { cudaStreamSynchronize(stream_); }
  static cudaStream_t GetStream(Stream<gpu>* stream) {
    return stream == nullptr ? 0 : stream->stream_;
  }
};
#endif

template <typename Device, int dimension, typename DType = default_real_t>
struct Tensor {
  static const bool kDevCPU = Device::kDevCPU;

  DType* dptr_ = nullptr;
  Shape<dimension> shape_;
  index_t stride_ = 0;
  Stream<Device>* stream_ = nullptr;

  MSHADOW_XINLINE Tensor() {}
  MSHADOW_XINLINE Tensor(DType* dptr, const Shape<dimension>& shape,
                         Stream<Device>* stream = nullptr)
      : dptr_(dptr),
        shape_(shape),
        stride_(shape[dimension - 1]),
        stream_(stream) {}

  MSHADOW_XINLINE index_t size(int i) const { return shape_[i]; }
  MSHADOW_XINLINE size_t MSize() const { return shape_.Size(); }
  MSHADOW_XINLINE bool CheckContiguous() const { return true; }
  MSHADOW_XINLINE Tensor<Device, dimension - 1, DType> operator[](
      index_t i) const {
    const Shape<dimension - 1> sub = shape_.SubShape();
    return {dptr_ + sub.Size() * i, sub, stream_};
  }
  MSHADOW_XINLINE Tensor Slice(index_t begin, index_t end) const {
    Shape<dimension> shape = shape_;
    shape[0] = end - begin;
    return {dptr_ + shape_.SubShape().Size() * begin, shape, stream_};
  }
};

template <typename Device, typename DType>
struct Tensor<Device, 1, DType> {
  static const bool kDevCPU = Device::kDevCPU;

  DType* dptr_ = nullptr;
  Shape<1> shape_;
  index_t stride_ = 0;
  Stream<Device>* stream_ = nullptr;

  MSHADOW_XINLINE Tensor() {}
  MSHADOW_XINLINE Tensor(DType* dptr, const Shape<1>& shape,
                         Stream<Device>* stream = nullptr)
      : dptr_(dptr), shape_(shape), stride_(shape[0]), stream_(stream) {}

  MSHADOW_XINLINE index_t size(int) const { return shape_[0]; }
  MSHADOW_XINLINE size_t MSize() const { return shape_.Size(); }
  MSHADOW_XINLINE DType& operator[](index_t i) const { return dptr_[i]; }
};

// Prints what follows by << and ends the process when a check failed.
class ConvlabCheck {
 public:
  ConvlabCheck(bool ok, const char* text, const char* file, int line)
      : ok_(ok) {
    if (!ok_) message_ << file << ":" << line << ": check failed: " << text;
  }
  ConvlabCheck(const ConvlabCheck&) = delete;
  ~ConvlabCheck() {
    if (ok_) return;
    std::cerr << message_.str() << std::endl;
    abort();
  }
  template <typename T>
  ConvlabCheck& operator<<(const T& value) {
    if (!ok_) message_ << " " << value;
    return *this;
  }

 private:
  const bool ok_;
  std::ostringstream message_;
};

}  // namespace mshadow

#define CHECK(condition)                                                      \
  ::mshadow::ConvlabCheck(static_cast<bool>(condition), #condition, __FILE__, \
                          __LINE__)
#define CHECK_EQ(a, b) CHECK((a) == (b))
#define CHECK_NE(a, b) CHECK((a) != (b))
#define CHECK_LT(a, b) CHECK((a) < (b))
#define CHECK_LE(a, b) CHECK((a) <= (b))
#define CHECK_GT(a, b) CHECK((a) > (b))
#define CHECK_GE(a, b) CHECK((a) >= (b))
#define LOG(severity) ::std::cerr

#ifdef __CUDACC__
#define MSHADOW_CUDA_CALL(call)                           \
  {                                                       \
    const cudaError_t convlab_error = (call);             \
    CHECK(convlab_error == cudaSuccess)                   \
        << "CUDA: " << cudaGetErrorString(convlab_error); \
  }
#endif

#endif  // CONVLAB_MSHADOW_TENSOR_H_
