#include "milestones/classifying/rank_messages.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"

namespace convlab {
namespace {

// All ranks are one program, so that values have the same bytes in all.
class Packer {
 public:
  template <typename T>
  void Value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  template <typename T>
  void Array(const T* values, int64_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    Value(count);
    bytes_.append(reinterpret_cast<const char*>(values), count * sizeof(T));
  }
  void Reserve(int64_t bytes) { bytes_.reserve(bytes); }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  void Value(T& value) {
    Copy(&value, sizeof(value));
  }
  template <typename Container>
  void Array(Container& values) {
    constexpr int64_t kBytes = sizeof(values[0]);
    int64_t count = 0;
    Value(count);
    if (count < 0 || count > static_cast<int64_t>(bytes_.size()) / kBytes) {
      ok_ = false;
      return;
    }
    values.resize(count);
    Copy(values.data(), count * kBytes);
  }
  // A piece's pixels, of which there may be none.
  void Pixels(Piece& piece) {
    int64_t count = 0;
    Value(count);
    if (count < 0 || count > static_cast<int64_t>(bytes_.size())) {
      ok_ = false;
    } else if (count > 0) {
      Copy(piece.Room(count), count);
    }
  }
  absl::Status Take() const {
    if (ok_ && bytes_.empty()) return absl::OkStatus();
    return absl::InternalError(
        ok_ ? absl::StrCat("a rank's message is ", bytes_.size(),
                           " bytes longer than its contents")
            : "a rank's message ends before its contents do");
  }
  bool ok() const { return ok_; }

 private:
  void Copy(void* to, size_t bytes) {
    if (!ok_ || bytes > bytes_.size()) {
      ok_ = false;
      return;
    }
    if (bytes > 0) std::memcpy(to, bytes_.data(), bytes);
    bytes_.remove_prefix(bytes);
  }

  absl::string_view bytes_;
  bool ok_ = true;
};

// An Answer in fewer bytes; labels are bytes in every output.
struct PackedAnswer {
  float margin;
  uint8_t label, second, close;
};

// What pieces and their answers begin with; packs or unpacks it.
template <typename Visitor, typename Worker, typename AnyPiece>
void VisitPiece(Visitor& visitor, Worker& worker, AnyPiece& piece) {
  visitor.Value(worker);
  visitor.Value(piece.number);
  visitor.Value(piece.first);
  visitor.Value(piece.count);
}

}  // namespace

std::string PackText(int worker, absl::string_view text) {
  Packer packer;
  packer.Value(worker);
  packer.Array(text.data(), static_cast<int64_t>(text.size()));
  return packer.Take();
}

absl::StatusOr<RankText> UnpackText(absl::string_view bytes) {
  RankText text;
  Unpacker unpacker(bytes);
  unpacker.Value(text.worker);
  unpacker.Array(text.text);
  RETURN_IF_ERROR(unpacker.Take());
  return text;
}

std::string PackTake(const RankTake& take) {
  Packer packer;
  packer.Value(take);
  return packer.Take();
}

absl::StatusOr<RankTake> UnpackTake(absl::string_view bytes) {
  RankTake take;
  Unpacker unpacker(bytes);
  unpacker.Value(take);
  RETURN_IF_ERROR(unpacker.Take());
  return take;
}

std::string PackPiece(const RankTake& take, const Piece& piece,
                      int64_t pixel_bytes) {
  Packer packer;
  constexpr int64_t kHeader = 64;
  packer.Reserve(kHeader + pixel_bytes);
  VisitPiece(packer, take, piece);
  packer.Array(piece.pixels(), pixel_bytes);
  return packer.Take();
}

absl::StatusOr<RankTake> UnpackPiece(absl::string_view bytes, Piece& piece) {
  RankTake take;
  Unpacker unpacker(bytes);
  VisitPiece(unpacker, take, piece);
  unpacker.Pixels(piece);
  RETURN_IF_ERROR(unpacker.Take());
  return take;
}

std::string PackAnswers(int worker, const Piece& piece) {
  std::vector<PackedAnswer> answers;
  answers.reserve(piece.answers.size());
  for (const Answer& answer : piece.answers) {
    answers.push_back({answer.margin, static_cast<uint8_t>(answer.label),
                       static_cast<uint8_t>(answer.second), answer.close});
  }
  Packer packer;
  VisitPiece(packer, worker, piece);
  packer.Array(answers.data(), static_cast<int64_t>(answers.size()));
  packer.Array(piece.logits.data(), static_cast<int64_t>(piece.logits.size()));
  return packer.Take();
}

absl::StatusOr<int> UnpackAnswers(absl::string_view bytes, Piece& piece) {
  int worker = 0;
  std::vector<PackedAnswer> answers;
  Unpacker unpacker(bytes);
  VisitPiece(unpacker, worker, piece);
  unpacker.Array(answers);
  unpacker.Array(piece.logits);
  RETURN_IF_ERROR(unpacker.Take());
  piece.answers.clear();
  piece.answers.reserve(answers.size());
  for (const PackedAnswer& answer : answers) {
    piece.answers.push_back(
        {answer.label, answer.second, answer.margin, answer.close != 0});
  }
  return worker;
}

absl::Status CheckAnswers(const Piece& piece, int64_t count, int classes,
                          bool logits) {
  const auto expect = [&](absl::string_view what, size_t found,
                          int64_t expected) {
    if (static_cast<int64_t>(found) == expected) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("piece ", piece.number, " has ",
                                            found, " ", what, ", expected ",
                                            expected));
  };
  RETURN_IF_ERROR(expect("answers", piece.answers.size(), count));
  RETURN_IF_ERROR(
      expect("logits", piece.logits.size(), logits ? count * classes : 0));
  for (const Answer& answer : piece.answers) {
    // They were bytes.
    const int largest = std::max(answer.label, answer.second);
    if (largest < classes) continue;
    return absl::InternalError(absl::StrCat("piece ", piece.number,
                                            " has an answer of class ", largest,
                                            ", expected 0 to ", classes - 1));
  }
  return absl::OkStatus();
}

std::string PackJob(const RankJob& job) {
  Packer packer;
  packer.Value(job.ok);
  packer.Value(job.block);
  packer.Value(job.gpu_piece);
  packer.Value(job.image_size);
  packer.Value(job.readers);
  packer.Array(job.images.data(), static_cast<int64_t>(job.images.size()));
  packer.Array(job.shared.data(), static_cast<int64_t>(job.shared.size()));
  packer.Value(job.slots);
  return packer.Take();
}

absl::StatusOr<RankJob> UnpackJob(absl::string_view bytes) {
  RankJob job;
  Unpacker unpacker(bytes);
  unpacker.Value(job.ok);
  unpacker.Value(job.block);
  unpacker.Value(job.gpu_piece);
  unpacker.Value(job.image_size);
  unpacker.Value(job.readers);
  unpacker.Array(job.images);
  unpacker.Array(job.shared);
  unpacker.Value(job.slots);
  RETURN_IF_ERROR(unpacker.Take());
  return job;
}

std::string PackWeights(const NetworkWeights& weights) {
  Packer packer;
  packer.Value(static_cast<int64_t>(weights.layers.size()));
  for (const LayerWeights& layer : weights.layers) {
    for (const std::vector<float>* values : {&layer.weight, &layer.bias}) {
      packer.Array(values->data(), static_cast<int64_t>(values->size()));
    }
  }
  return packer.Take();
}

absl::StatusOr<NetworkWeights> UnpackWeights(absl::string_view bytes) {
  NetworkWeights weights;
  int64_t layers = 0;
  Unpacker unpacker(bytes);
  unpacker.Value(layers);
  for (int64_t i = 0; i < layers && unpacker.ok(); ++i) {
    LayerWeights& layer = weights.layers.emplace_back();
    unpacker.Array(layer.weight);
    unpacker.Array(layer.bias);
  }
  RETURN_IF_ERROR(unpacker.Take());
  return weights;
}

}  // namespace convlab
