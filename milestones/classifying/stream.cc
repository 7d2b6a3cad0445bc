#include "milestones/classifying/stream.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <vector>

#include "common/status/status.h"

namespace convlab {
namespace {

using Clock = std::chrono::steady_clock;

struct Block {
  int64_t first = 0, count = 0;  // images
  std::vector<uint8_t> pixels;
  std::vector<float> logits;
  std::vector<uint8_t> labels;
};

// Calls `work`, and adds its time to `ns`.
template <typename Work>
absl::Status Timed(int64_t& ns, const Work& work) {
  const auto start = Clock::now();
  absl::Status status = work();
  ns += std::chrono::nanoseconds(Clock::now() - start).count();
  return status;
}

}  // namespace

absl::StatusOr<StreamTimes> ClassifyStream(IdxImageStream& images,
                                           CompiledNetwork& compiled,
                                           const StreamOptions& options,
                                           Answers& answers,
                                           AnswersFile* file) {
  const int64_t pixels = int64_t{images.height()} * images.width();
  const int64_t most = std::min(options.block, options.count);
  StreamTimes times;
  const auto read = [&](Block& block, int64_t first) {
    return Timed(times.read_ns, [&]() -> absl::Status {
      block.first = first;
      block.pixels.resize(most * pixels);
      ASSIGN_OR_RETURN(block.count,
                       images.Read(std::min(most, options.count - first),
                                   block.pixels.data()));
      return absl::OkStatus();
    });
  };
  const auto write = [&](Block& block) {
    return Timed(times.write_ns, [&]() -> absl::Status {
      block.labels.resize(block.count);
      for (int64_t i = 0; i < block.count; ++i) {
        const Answer answer =
            AnswerOf(&block.logits[i * options.classes], options.classes);
        block.labels[i] = static_cast<uint8_t>(answer.label);
        answers.Add(block.first + i, answer);
      }
      if (file == nullptr) return absl::OkStatus();
      return options.logits
                 ? file->WriteLogits(absl::MakeConstSpan(
                       block.logits.data(), block.count * options.classes))
                 : file->WriteLabels(block.labels);
    });
  };

  // One is read, one computed, one written.
  std::array<Block, 3> blocks;
  std::future<absl::Status> writing;
  RETURN_IF_ERROR(read(blocks[0], 0));
  int64_t done = 0;
  for (size_t i = 0; done < options.count; ++i) {
    Block& block = blocks[i % 3];
    const int64_t next = done + block.count;
    std::future<absl::Status> reading;
    if (next < options.count) {
      reading = std::async(std::launch::async, read,
                           std::ref(blocks[(i + 1) % 3]), next);
    }
    block.logits.resize(most * options.classes);
    const absl::Status computed = Timed(times.compute_ns, [&] {
      return compiled.Run(block.pixels.data(), block.count,
                          block.logits.data());
    });
    // The futures refer to the blocks: both are waited for in any case.
    const absl::Status written =
        writing.valid() ? writing.get() : absl::OkStatus();
    const absl::Status was_read =
        reading.valid() ? reading.get() : absl::OkStatus();
    for (const absl::Status& status : {computed, written, was_read}) {
      RETURN_IF_ERROR(status);
    }
    writing = std::async(std::launch::async, write, std::ref(block));
    done = next;
    if (options.progress) options.progress(done);
  }
  RETURN_IF_ERROR(writing.get());
  return times;
}

}  // namespace convlab
