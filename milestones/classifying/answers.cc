#include "milestones/classifying/answers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/value_checker.h"
#include "common/status/status.h"

namespace convlab {
namespace {

constexpr size_t kMostUncertain = 10;
constexpr size_t kMostClose = 1000;
constexpr int kLabelClasses = 10;  // of IDX files with labels (idx.h)

// Less certain answers before others, and of equal ones the earlier images.
template <typename Doubt>
bool LessCertain(const Doubt& a, const Doubt& b) {
  return std::pair(a.answer.margin, a.index) <
         std::pair(b.answer.margin, b.index);
}

}  // namespace

Answers::Answers(int classes, std::vector<uint8_t> labels)
    : classes_(classes),
      labels_(std::move(labels)),
      counts_(static_cast<size_t>(labels_.empty() ? 1 : kLabelClasses) *
                  static_cast<size_t>(classes),
              0) {}

void Answers::Add(int64_t index, const Answer& answer) {
  ++count_;
  const Doubt doubt = {index, answer};
  if (answer.close && ++close_count_ <= static_cast<int64_t>(kMostClose)) {
    close_.push_back(doubt);
  }
  const int truth = labels_.empty() ? 0 : labels_[index];
  ++counts_[truth * classes_ + answer.label];
  if (labels_.empty()) return;
  correct_ += answer.label == truth;
  if (uncertain_.size() == kMostUncertain) {
    if (!LessCertain(doubt, uncertain_.front())) return;
    std::pop_heap(uncertain_.begin(), uncertain_.end(), LessCertain<Doubt>);
    uncertain_.pop_back();
  }
  uncertain_.push_back(doubt);
  std::push_heap(uncertain_.begin(), uncertain_.end(), LessCertain<Doubt>);
}

AnswersState Answers::Save() const {
  const auto save = [](const std::vector<Doubt>& doubts) {
    std::vector<AnswersState::Doubt> saved;
    for (const Doubt& doubt : doubts) {
      const Answer& answer = doubt.answer;
      uint32_t bits;
      std::memcpy(&bits, &answer.margin, sizeof(bits));
      saved.push_back(
          {doubt.index, answer.label, answer.second, bits, answer.close});
    }
    return saved;
  };
  return {count_,  correct_,         close_count_,
          counts_, save(uncertain_), save(close_)};
}

absl::Status Answers::Check(const AnswersState& state) const {
  ValueChecker check;
  const auto most_images =
      labels_.empty() ? kMostImages : static_cast<int64_t>(labels_.size());
  check.Range("answers.count", state.count, 0, most_images);
  check.Range("answers.correct", state.correct, 0, state.count);
  check.Range("answers.close_count", state.close_count, 0, state.count);
  const auto classes = static_cast<int64_t>(counts_.size());
  check.Range("the number of answers.counts",
              static_cast<int64_t>(state.counts.size()), classes, classes);
  check.Counts("answers.counts", state.counts, state.count);
  const auto check_doubts = [&](absl::string_view field, size_t most,
                                const std::vector<AnswersState::Doubt>& list) {
    check.Range(absl::StrCat("the number of ", field),
                static_cast<int64_t>(list.size()), 0,
                static_cast<int64_t>(most));
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string here = absl::StrCat(field, "[", i, "].");
      check.Range(here + "index", list[i].index, 0, state.count - 1);
      check.Range(here + "label", list[i].label, 0, classes_ - 1);
      check.Range(here + "second", list[i].second, 0, classes_ - 1);
    }
  };
  check_doubts("answers.uncertain", kMostUncertain, state.uncertain);
  check_doubts("answers.close", kMostClose, state.close);
  return check.Take();
}

absl::Status Answers::Restore(const AnswersState& state) {
  RETURN_IF_ERROR(Check(state));
  count_ = state.count;
  correct_ = state.correct;
  close_count_ = state.close_count;
  counts_ = state.counts;
  const auto restore = [](const std::vector<AnswersState::Doubt>& saved) {
    std::vector<Doubt> doubts;
    for (const AnswersState::Doubt& doubt : saved) {
      Answer answer = {doubt.label, doubt.second, 0, doubt.close};
      std::memcpy(&answer.margin, &doubt.margin_bits, sizeof(answer.margin));
      doubts.push_back({doubt.index, answer});
    }
    return doubts;
  };
  uncertain_ = restore(state.uncertain);
  std::make_heap(uncertain_.begin(), uncertain_.end(), LessCertain<Doubt>);
  close_ = restore(state.close);
  return absl::OkStatus();
}

std::string Answers::Describe(const Doubt& doubt) const {
  std::string text = absl::StrFormat("image %d: %d, then %d, logits %.3g apart",
                                     doubt.index, doubt.answer.label,
                                     doubt.answer.second, doubt.answer.margin);
  if (!labels_.empty()) {
    const int truth = labels_[doubt.index];
    absl::StrAppend(&text, truth == doubt.answer.label
                               ? "; right"
                               : absl::StrCat("; wrong, it is ", truth));
  }
  return text;
}

std::vector<std::string> Answers::Text() const {
  std::vector<std::string> lines;
  if (labels_.empty()) {
    lines.push_back(absl::StrCat(count_, " images"));
    for (int c = 0; c < classes_; ++c) {
      lines.push_back(absl::StrFormat("class %d: %d", c, counts_[c]));
    }
    return lines;
  }
  lines.push_back(absl::StrFormat("%d of %d correct, %.2f %%", correct_, count_,
                                  100.0 * correct_ / count_));
  lines.emplace_back("Confusion matrix, a row for each true class:");
  const int width = static_cast<int>(absl::StrCat(count_).size()) + 1;
  std::string header = "found ";
  for (int c = 0; c < classes_; ++c) {
    absl::StrAppendFormat(&header, "%*d", width, c);
  }
  lines.push_back(header);
  for (int truth = 0; truth < kLabelClasses; ++truth) {
    std::string line = absl::StrFormat("true %d", truth);
    for (int c = 0; c < classes_; ++c) {
      absl::StrAppendFormat(&line, "%*d", width, counts_[truth * classes_ + c]);
    }
    lines.push_back(line);
  }
  lines.emplace_back("The most uncertain images:");
  std::vector<Doubt> uncertain = uncertain_;
  std::sort(uncertain.begin(), uncertain.end(), LessCertain<Doubt>);
  for (const Doubt& doubt : uncertain) lines.push_back(Describe(doubt));
  return lines;
}

std::vector<std::string> Answers::CloseText() const {
  std::vector<std::string> lines;
  if (close_.empty()) return lines;
  lines.push_back(absl::StrCat(close_count_,
                               close_count_ == 1 ? " answer" : " answers",
                               " which rounding in float32 may decide:"));
  for (const Doubt& doubt : close_) lines.push_back(Describe(doubt));
  if (close_count_ > static_cast<int64_t>(close_.size())) {
    lines.push_back(
        absl::StrCat("and ", close_count_ - close_.size(), " more"));
  }
  return lines;
}

}  // namespace convlab
