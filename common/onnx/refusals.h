// Changes of a small model after which it is refused.
#ifndef COMMON_ONNX_REFUSALS_H_
#define COMMON_ONNX_REFUSALS_H_

#include <functional>
#include <string>
#include <vector>

#include "common/onnx/onnx.h"
#include "common/onnx/test_models.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {

struct Refusal {
  const char* name;
  std::function<void(OnnxModel&)> change;  // of SmallModel()
  std::vector<std::string> words;          // of the error
};

inline std::string NameOf(const ::testing::TestParamInfo<Refusal>& refusal) {
  return refusal.param.name;
}

class OnnxRefusals : public ::testing::TestWithParam<Refusal> {};

}  // namespace convlab

#endif  // COMMON_ONNX_REFUSALS_H_
