#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/compiled/compiled.h"

namespace convlab {

Answer AnswerOf(const float* logits, int classes) {
  Answer answer = {0, 0, std::numeric_limits<float>::infinity(), false};
  if (classes == 1) return answer;
  // One pass without branches that depend on the logits: no processor predicts
  // them, and streams of images wait for this.
  const bool swapped = logits[1] > logits[0];
  bool ordered = logits[0] == logits[0] && logits[1] == logits[1];  // no NaN
  int label = swapped, second = !swapped;
  float first = logits[label], next = logits[second];
  for (int c = 2; c < classes; ++c) {
    const float logit = logits[c];
    ordered &= logit == logit;
    const bool largest = logit > first, larger = logit > next;
    second = largest ? label : larger ? c : second;
    next = largest ? first : larger ? logit : next;
    label = largest ? c : label;
    first = largest ? logit : first;
  }
  answer.label = label;
  answer.second = second;
  answer.margin = first - next;
  // Not above the limit, so that two infinities are close too.
  answer.close =
      !ordered ||
      !(answer.margin > 0x1p-17f * std::max(std::fabs(first), std::fabs(next)));
  return answer;
}

}  // namespace convlab
