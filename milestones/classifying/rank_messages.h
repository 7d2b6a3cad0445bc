// What the ranks of a run tell each other: rank 0 deals pieces to the workers
// of the others, which answer.
#ifndef MILESTONES_CLASSIFYING_RANK_MESSAGES_H_
#define MILESTONES_CLASSIFYING_RANK_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/weights/weights.h"
#include "milestones/classifying/deal.h"

namespace convlab {

enum RankMessageKind {
  // To rank 0, in this order but for kLoseMessage, which may come at any time.
  kWorkerMessage = 1,  // PackText with a worker's name, before it compiles
  kReadyMessage,       // PackText of the rank: all have compiled, or failed
  kTakeMessage,        // PackTake: the worker wants a piece
  kAnswersMessage,     // PackAnswers
  kLoseMessage,        // PackText with the error of a worker, or of the rank
  kShareMessage,       // PackText with a worker's share, as JSON
  kDoneMessage,        // PackText of the rank: its last message
  // From rank 0.
  kPieceMessage,  // PackPiece
  kNoneMessage,   // PackText with no text: there are no more for the worker
  kEndMessage,    // PackText with a RunEnd in place of a worker
};

enum RunEnd {
  kInOrder,    // the ranks leave together
  kRankLost,   // all images are answered, without a rank that was lost
  kRunFailed,  // rank 0 tells why, and ends the others
};

// Of a worker by its number in its rank, or of the rank: -1.
struct RankText {
  int worker = -1;
  std::string text;
};
std::string PackText(int worker, absl::string_view text);
absl::StatusOr<RankText> UnpackText(absl::string_view bytes);

// Which worker wants a piece, and where its pixels go: a slot of the memory
// that the rank shares with rank 0, or none, -1, if they come with the message.
struct RankTake {
  int worker = -1;
  int slot = -1;
};
std::string PackTake(const RankTake& take);
absl::StatusOr<RankTake> UnpackTake(absl::string_view bytes);

// A piece for a worker; its pixels, or nothing if they are in the slot or the
// rank reads them itself.
std::string PackPiece(const RankTake& take, const Piece& piece,
                      int64_t pixel_bytes);
// `piece` gets the pixels that are in the message.
absl::StatusOr<RankTake> UnpackPiece(absl::string_view bytes, Piece& piece);

// A piece's answers, and its logits if it has any.
std::string PackAnswers(int worker, const Piece& piece);
absl::StatusOr<int> UnpackAnswers(absl::string_view bytes, Piece& piece);
// Internal, unless these are answers for each of `count` images, with logits
// if they are asked for, and none of another class.
absl::Status CheckAnswers(const Piece& piece, int64_t count, int classes,
                          bool logits);

// What rank 0 tells all before the first piece.
struct RankJob {
  bool ok = false;  // false: rank 0 has failed, and told why
  int64_t block = 0;
  int64_t gpu_piece = 0;  // WorkerJob::gpu_piece
  int image_size = 0;
  int readers = 1;     // threads that fetch pieces for a worker
  std::string images;  // their digest, where each rank reads its pieces
  // Memory for pieces that the other ranks of rank 0's host share with it: its
  // handle, or nothing if there is none, and the number of slots that each of
  // these ranks has.
  std::string shared;
  int slots = 0;
};
std::string PackJob(const RankJob& job);
absl::StatusOr<RankJob> UnpackJob(absl::string_view bytes);

// The parameters of all layers.
std::string PackWeights(const NetworkWeights& weights);
absl::StatusOr<NetworkWeights> UnpackWeights(absl::string_view bytes);

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_RANK_MESSAGES_H_
