// The seal of a run record: a digest over its content, which no longer fits
// after an edit. docs/judging.md says what it can prove and what it cannot.
#ifndef COMMON_RECORD_SEAL_H_
#define COMMON_RECORD_SEAL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/run_record.h"

namespace convlab {

// The variable of the environment that names the file of the key.
inline constexpr char kSealKeyVariable[] = "CONVLAB_SEAL_KEY";

// Reads a key: the content of the file `path` or, if that is empty, of the file
// that CONVLAB_SEAL_KEY names, without blanks and line ends round it. Empty if
// neither is given. InvalidArgument if the key has fewer than 16 bytes.
absl::StatusOr<std::string> ReadSealKey(const std::string& path);

// Seals a record's text: with SHA-256, or with HMAC-SHA-256 if there is a key.
// Blanks, the order of fields and a seal in the text do not count.
// InvalidArgument if the text is not a JSON object.
absl::StatusOr<Seal> MakeSeal(absl::string_view json, absl::string_view key);

enum class SealState {
  kUnsealed,  // has none: an older record, or its seal was removed
  kIntact,
  kEdited,
  kOtherKey,  // sealed with another key or without one, or the key is missing
};

// Checks the seal in a record's text. With an empty `key` only seals without a
// key can be checked. Unknown fields count, so that records of other versions
// keep their seals. InvalidArgument if the text is not a JSON object.
absl::StatusOr<SealState> CheckSeal(absl::string_view json,
                                    absl::string_view key);

}  // namespace convlab

#endif  // COMMON_RECORD_SEAL_H_
