#include "common/record/seal.h"

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/hash/hash.h"
#include "common/json/json_fields.h"
#include "common/status/status.h"
#include "nlohmann/json.hpp"

namespace convlab {
namespace {

constexpr size_t kShortestKey = 16;

// The text without its seal in a form that depends on the content alone: fields
// in alphabetical order, no blanks.
std::string Canonical(nlohmann::json record) {
  record.erase("seal");
  using Handler = nlohmann::json::error_handler_t;
  return record.dump(-1, ' ', false, Handler::replace);
}

absl::StatusOr<nlohmann::json> ParseObject(absl::string_view text) {
  ASSIGN_OR_RETURN(nlohmann::json parsed,
                   json_fields::Parse("run record", text));
  if (!parsed.is_object()) {
    return absl::InvalidArgumentError("not a run record: not a JSON object");
  }
  return parsed;
}

Seal SealOf(absl::string_view canonical, absl::string_view key) {
  if (key.empty()) return {"sha256", "", Sha256(canonical)};
  return {"hmac-sha256",
          Sha256(absl::StrCat("convlab key id ", key)).substr(0, 16),
          HmacSha256(key, canonical)};
}

std::string TextOf(const nlohmann::json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : "";
}

}  // namespace

absl::StatusOr<std::string> ReadSealKey(const std::string& path) {
  std::string file = path;
  if (file.empty()) {
    const char* variable = std::getenv(kSealKeyVariable);
    if (variable == nullptr || *variable == '\0') return "";
    file = variable;
  }
  ASSIGN_OR_RETURN(const std::string content, ReadFile(UserPath(file)));
  std::string key(absl::StripAsciiWhitespace(content));
  if (key.size() < kShortestKey) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": a key of ", key.size(), " bytes, expected at ", "least ",
        kShortestKey, "; head -c 32 /dev/urandom | ", "base64 makes one"));
  }
  return key;
}

absl::StatusOr<Seal> MakeSeal(absl::string_view json, absl::string_view key) {
  ASSIGN_OR_RETURN(nlohmann::json record, ParseObject(json));
  return SealOf(Canonical(std::move(record)), key);
}

absl::StatusOr<SealState> CheckSeal(absl::string_view json,
                                    absl::string_view key) {
  ASSIGN_OR_RETURN(nlohmann::json record, ParseObject(json));
  const auto found = record.find("seal");
  if (found == record.end()) return SealState::kUnsealed;
  if (!found->is_object()) return SealState::kEdited;
  const Seal seal = {TextOf(*found, "method"), TextOf(*found, "key_id"),
                     TextOf(*found, "digest")};
  const std::string canonical = Canonical(std::move(record));
  const bool keyed = seal.method == "hmac-sha256";
  if (keyed && key.empty()) return SealState::kOtherKey;
  const Seal expected = SealOf(canonical, keyed ? key : "");
  if (seal.method != expected.method) return SealState::kEdited;
  if (seal.key_id != expected.key_id) return SealState::kOtherKey;
  if (seal.digest != expected.digest) return SealState::kEdited;
  return keyed == !key.empty() ? SealState::kIntact : SealState::kOtherKey;
}

}  // namespace convlab
