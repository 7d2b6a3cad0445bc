#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/compiled/compiled.h"

namespace convlab {

Answer AnswerOf(const float* logits, int classes) {
  Answer answer = {0, 0, std::numeric_limits<float>::infinity(), false};
  if (classes == 1) return answer;
  answer.label =
      static_cast<int>(std::max_element(logits, logits + classes) - logits);
  answer.second = answer.label == 0 ? 1 : 0;
  for (int c = answer.second + 1; c < classes; ++c) {
    if (c != answer.label && logits[c] > logits[answer.second]) {
      answer.second = c;
    }
  }
  const float first = logits[answer.label], second = logits[answer.second];
  answer.margin = first - second;
  // Not above the limit, so that NaN is close too.
  answer.close = !(answer.margin >
                   0x1p-17f * std::max(std::fabs(first), std::fabs(second)));
  return answer;
}

}  // namespace convlab
