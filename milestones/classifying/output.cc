#include "milestones/classifying/output.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/json/json_fields.h"
#include "common/record/value_checker.h"
#include "common/status/status.h"

namespace convlab {
namespace {

constexpr char kSchema[] = "convlab.answers/2";

// What a run that ends without warning may lose.
constexpr std::chrono::seconds kSavePeriod(5);

}  // namespace

// The file beside the answers.
struct RunState {
  AnswersOf of;
  int64_t done = 0;   // images
  int64_t bytes = 0;  // of the file of answers
  AnswersState answers;
};

template <typename Visitor>
void Fields(Visitor& visit, AnswersOf& of) {
  visit("network", of.network);
  visit("weights", of.weights);
  visit("images", of.images);
  visit("device", of.device);
  visit("count", of.count);
  visit("block", of.block);
  visit("gpu_piece", of.gpu_piece);
  visit("values", of.values);
}

template <typename Visitor>
void Fields(Visitor& visit, AnswersState::Doubt& doubt) {
  visit("index", doubt.index);
  visit("label", doubt.label);
  visit("second", doubt.second);
  visit("margin_bits", doubt.margin_bits);
  visit("close", doubt.close);
}

template <typename Visitor>
void Fields(Visitor& visit, AnswersState& state) {
  visit("count", state.count);
  visit("correct", state.correct);
  visit("close_count", state.close_count);
  visit("counts", state.counts);
  visit("uncertain", state.uncertain);
  visit("close", state.close);
}

template <typename Visitor>
void Fields(Visitor& visit, RunState& state) {
  visit("of", state.of);
  visit("done", state.done);
  visit("bytes", state.bytes);
  visit("answers", state.answers);
}

namespace {

// InvalidArgument, naming the first difference. Any gpu_piece may have been:
// what was found is gone on with.
absl::Status CheckSame(const AnswersOf& found, const AnswersOf& expected) {
  const struct {
    const char* what;
    std::string found, expected;
  } kPairs[] = {
      {"the network", found.network, expected.network},
      {"the weights' digest", found.weights, expected.weights},
      {"the images' digest", found.images, expected.images},
      {"the number of images", absl::StrCat(found.count),
       absl::StrCat(expected.count)},
      {"the device", found.device, expected.device},
      {"a piece's images", absl::StrCat(found.block),
       absl::StrCat(expected.block)},
      {"what was written", found.values, expected.values},
  };
  for (const auto& pair : kPairs) {
    if (pair.found == pair.expected) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(pair.what, " was ", pair.found, ", and is ", pair.expected,
                     " now: --resume goes on with the same "
                     "alone; remove this file and the answers to begin anew"));
  }
  return absl::OkStatus();
}

// InvalidArgument, naming the field. Answers check those of their own.
absl::Status CheckValues(const RunState& state) {
  ValueChecker check;
  constexpr int64_t kMostGpuPiece = int64_t{1} << 20;
  check.Range("of.gpu_piece", state.of.gpu_piece, 0, kMostGpuPiece);
  check.Range("done", state.done, 0, state.of.count);
  check.Range("bytes", state.bytes, 0, kMostBytes);
  check.Range("answers.count", state.answers.count, state.done, state.done);
  return check.Take();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Output>> Output::Open(
    const OutputOptions& options, Answers answers) {
  auto output =
      std::unique_ptr<Output>(new Output(options, std::move(answers)));
  output->saved_ = std::chrono::steady_clock::now();
  if (options.path.empty()) return output;
  if (options.resume) {
    RETURN_IF_ERROR(output->Restore());
  } else {
    ASSIGN_OR_RETURN(output->file_,
                     AnswersFile::Create(options.path, options.format,
                                         options.of.count, output->logits()));
  }
  return output;
}

absl::Status Output::Restore() {
  int64_t bytes = 0;
  const absl::StatusOr<std::string> text = ReadFile(StatePath());
  if (text.ok()) {
    const absl::StatusOr<RunState> state =
        ParseJsonText<RunState>("state of a run", kSchema, *text);
    absl::Status usable = state.status();
    if (usable.ok()) usable = CheckSame(state->of, options_.of);
    if (usable.ok()) usable = CheckValues(*state);
    if (usable.ok()) usable = answers_.Restore(state->answers);
    RETURN_IF_ERROR(Annotate(usable, StatePath()));
    options_.of.gpu_piece = state->of.gpu_piece;
    done_ = state->done;
    bytes = state->bytes;
  } else if (!absl::IsNotFound(text.status())) {
    return text.status();
  } else {
    RETURN_IF_ERROR(CheckWritable(options_.path));
    RETURN_IF_ERROR(CheckNoAnswers());
    // Before there are answers, so that there are none without it.
    RETURN_IF_ERROR(SaveState(0));
  }
  ASSIGN_OR_RETURN(file_, AnswersFile::Grow(options_.path, options_.format,
                                            logits(), bytes));
  return bytes == 0 ? Save() : absl::OkStatus();
}

absl::Status Output::CheckNoAnswers() const {
  struct stat info;
  if (stat(options_.path.c_str(), &info) != 0 || info.st_size == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      options_.path, " has answers already, but there is no ", StatePath(),
      ", which would tell of what: remove or rename them to begin anew"));
}

absl::Status Output::Save() {
  ASSIGN_OR_RETURN(const int64_t bytes, file_->Save(done_));
  saved_ = std::chrono::steady_clock::now();
  return SaveState(bytes);
}

absl::Status Output::SaveState(int64_t bytes) const {
  RunState state;
  state.of = options_.of;
  state.done = done_;
  state.bytes = bytes;
  state.answers = answers_.Save();
  return WriteFileAtomically(StatePath(), ToJsonText(kSchema, state));
}

absl::Status Output::Write(const Piece& piece) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (given_up_) return absl::CancelledError("interrupted");
  if (file_ != nullptr && options_.logits) {
    RETURN_IF_ERROR(file_->WriteLogits(absl::MakeConstSpan(
        piece.logits.data(), piece.count * options_.classes)));
  } else if (file_ != nullptr) {
    std::vector<uint8_t> labels;
    labels.reserve(piece.count);
    for (const Answer& answer : piece.answers) {
      labels.push_back(static_cast<uint8_t>(answer.label));
    }
    RETURN_IF_ERROR(file_->WriteLabels(labels));
  }
  // An allocation may be refused on the way.
  counting_ = true;
  int64_t index = piece.first;
  for (const Answer& answer : piece.answers) answers_.Add(index++, answer);
  done_ = piece.first + piece.count;
  counting_ = false;
  const bool save = options_.resume &&
                    std::chrono::steady_clock::now() - saved_ > kSavePeriod;
  return save ? Save() : absl::OkStatus();
}

absl::Status Output::Finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (given_up_) return absl::CancelledError("interrupted");
  if (file_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(options_.resume ? Save() : file_->Commit());
  given_up_ = true;
  return absl::OkStatus();
}

std::string Output::GiveUp() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (given_up_ || file_ == nullptr) return "";
  given_up_ = true;
  if (!options_.resume) return absl::StrCat("there is no new ", options_.path);
  const absl::Status saved =
      counting_ ? absl::InternalError("a piece of answers is counted in part")
                : Save();
  return saved.ok() ? absl::StrCat(done_, " of ", options_.of.count,
                                   " images are answered in ", options_.path,
                                   ", and --resume goes on behind them")
                    : absl::StrCat(options_.path,
                                   " has what was saved before, and "
                                   "--resume goes on behind it: ",
                                   saved.message());
}

}  // namespace convlab
