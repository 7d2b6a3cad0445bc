// What the tests of the GPU's layers share. Outputs are filled with NaN first,
// so that unwritten elements are found.
#ifndef KERNELS_LAYERS_CUDA_LAYERS_TESTING_H_
#define KERNELS_LAYERS_CUDA_LAYERS_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/parallel/parallel.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device.h"

namespace convlab::cuda {

// A tensor in device memory.
template <typename T>
class Tensor {
 public:
  explicit Tensor(int64_t count) : count_(count) {
    auto buffer = DeviceBuffer::Allocate(std::max<int64_t>(count, 1) *
                                         static_cast<int64_t>(sizeof(T)));
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    if (buffer.ok()) buffer_ = *std::move(buffer);
    Fill(0xff);
  }
  explicit Tensor(const std::vector<T>& values) : Tensor(values.size()) {
    EXPECT_TRUE(
        CopyToDevice(data(), values.data(), values.size() * sizeof(T)).ok());
  }
  void Fill(uint8_t byte) const {
    EXPECT_TRUE(FillBytes(data(), byte, count_ * sizeof(T)).ok());
  }
  int64_t count() const { return count_; }
  T* data() const { return static_cast<T*>(buffer_.data()); }
  std::vector<T> Read() const { return Read(0, count_); }
  std::vector<T> Read(int64_t first, int64_t count) const {
    std::vector<T> values(count);
    const absl::Status status =
        CopyToHost(values.data(), data() + first, count * sizeof(T));
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }

 private:
  const int64_t count_;
  DeviceBuffer buffer_;
};

// Skips its tests where there is no GPU.
class CudaLayersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto facts = FindDevice();
    if (!facts.ok()) GTEST_SKIP() << facts.status().message();
  }

  std::vector<float> Random(int64_t count) {
    std::uniform_real_distribution<float> distribution(-1, 1);
    std::vector<float> values(count);
    for (float& value : values) value = distribution(generator_);
    return values;
  }
  std::vector<float> Integers(int64_t count, int largest) {
    std::uniform_int_distribution<int> distribution(-largest, largest);
    std::vector<float> values(count);
    for (float& value : values) value = distribution(generator_);
    return values;
  }
  std::vector<uint8_t> Bytes(int64_t count) {
    std::uniform_int_distribution<int> distribution(0, 255);
    std::vector<uint8_t> values(count);
    for (uint8_t& value : values) value = distribution(generator_);
    return values;
  }

  Workers workers_{Workers::Available()};
  std::mt19937 generator_{20261122};
};

}  // namespace convlab::cuda

#endif  // KERNELS_LAYERS_CUDA_LAYERS_TESTING_H_
