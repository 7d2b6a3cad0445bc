#include "milestones/classifying/deal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/math/rounding.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "kernels/measure/op_time.h"

namespace convlab {

absl::Status ReadPixels(ImageFiles& images, Piece& piece) {
  const size_t bytes = piece.count * images.height() * images.width();
  return images.Read(piece.first, piece.count, piece.Room(bytes));
}

Deal::Deal(ImageFiles& images, const DealOptions& options)
    : images_(images),
      options_(options),
      image_bytes_(int64_t{images.height()} * images.width()),
      pieces_(CeilDivide(options.count - options.first, options.block)) {}

int Deal::AddWorker(const std::string& name, int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  workers_.push_back({name, rank});
  return static_cast<int>(workers_.size()) - 1;
}

absl::StatusOr<bool> Deal::Take(int worker, Piece& piece) {
  std::unique_lock<std::mutex> reading(reading_, std::defer_lock);
  if (!images_.random_access()) reading.lock();
  if (!TakeNumber(worker, piece)) return false;
  const absl::StatusOr<int64_t> ns =
      HostNs([&] { return ReadOrRecall(piece); });
  if (!ns.ok()) {
    Fail(ns.status());
    return ns.status();
  }
  piece.read_ns = *ns;
  return true;
}

bool Deal::TakeNumber(int worker, Piece& piece) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto ready = [&] {
    return ended() || workers_[worker].lost || !returned_.empty() ||
           (next_ < pieces_ && next_ - written_ < options_.window);
  };
  changed_.wait(lock, ready);
  if (ended() || workers_[worker].lost) return false;
  // The earliest first: others wait for it to be written.
  const auto earliest = std::min_element(returned_.begin(), returned_.end());
  if (earliest != returned_.end()) {
    piece.number = *earliest;
    returned_.erase(earliest);
  } else {
    piece.number = next_++;
  }
  piece.first = FirstOf(piece.number);
  piece.count = CountOf(piece.number);
  out_[piece.number] = worker;
  return true;
}

int64_t Deal::FirstOf(int64_t number) const {
  return options_.first + number * options_.block;
}

int64_t Deal::CountOf(int64_t number) const {
  if (number < 0 || number >= pieces_) return 0;
  return std::min(options_.block, options_.count - FirstOf(number));
}

absl::Status Deal::ReadOrRecall(Piece& piece) {
  const auto kept = kept_.find(piece.number);
  if (kept != kept_.end()) {
    const std::vector<uint8_t>& pixels = kept->second;
    std::copy(pixels.begin(), pixels.end(), piece.Room(pixels.size()));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(ReadPixels(images_, piece));
  if (images_.random_access() || options_.tolerate == 0) {
    return absl::OkStatus();
  }
  const int64_t written = [&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    return written_;
  }();
  kept_.erase(kept_.begin(), kept_.lower_bound(written));
  kept_[piece.number].assign(piece.pixels(),
                             piece.pixels() + piece.count * image_bytes_);
  return absl::OkStatus();
}

bool Deal::StillHas(int worker, int64_t number) const {
  const auto out = out_.find(number);
  return out != out_.end() && out->second == worker;
}

void Deal::Give(int worker, Piece& piece) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // One that was given up may answer after all.
  if (!StillHas(worker, piece.number)) return;
  out_.erase(piece.number);
  Piece& answered = answered_[piece.number];
  answered.number = piece.number;
  answered.first = FirstOf(piece.number);
  answered.count = CountOf(piece.number);
  answered.answers = std::move(piece.answers);
  answered.logits = std::move(piece.logits);
  changed_.notify_all();
}

void Deal::Lose(int worker, const absl::Status& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  LoseLocked(workers_[worker].rank, workers_[worker].name, why);
}

void Deal::LoseRank(int rank, const absl::Status& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  LoseLocked(rank, "", why);
}

void Deal::LoseLocked(int rank, const std::string& name,
                      const absl::Status& why) {
  const absl::Status refused = CatchRefusals([&] {
    TakeAway(rank, name, why);
    return absl::OkStatus();
  });
  if (!refused.ok() && !ended()) failure_ = refused;
  changed_.notify_all();
}

void Deal::TakeAway(int rank, const std::string& name,
                    const absl::Status& why) {
  if (ended() || !lost_ranks_.insert(rank).second) return;
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    if (worker.rank == rank && !worker.lost) {
      worker.lost = true;
      for (auto out = out_.begin(); out != out_.end();) {
        if (out->second != static_cast<int>(i)) {
          ++out;
          continue;
        }
        returned_.push_back(out->first);
        out = out_.erase(out);
      }
    }
  }
  const absl::Status told = name.empty() ? why : Annotate(why, name);
  if (static_cast<int>(lost_ranks_.size()) > options_.tolerate) {
    failure_ = told;
  } else if (static_cast<int>(lost_ranks_.size()) >= options_.ranks) {
    failure_ = Annotate(told, "no worker is left");
  } else if (options_.tell) {
    options_.tell(
        absl::StrCat(told.message(), "; the others go on with its pieces"));
  }
}

absl::StatusOr<bool> Deal::Next(Piece& piece) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return ended() || answered_.count(written_) > 0; });
  RETURN_IF_ERROR(failure_);
  if (written_ == pieces_) return false;
  const auto next = answered_.find(written_);
  piece = std::move(next->second);
  answered_.erase(next);
  ++written_;
  changed_.notify_all();
  return true;
}

void Deal::Fail(const absl::Status& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!ended()) failure_ = why;
  changed_.notify_all();
}

}  // namespace convlab
