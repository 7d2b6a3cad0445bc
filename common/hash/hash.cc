#include "common/hash/hash.h"

#include <nettle/hmac.h>
#include <nettle/sha2.h>

#include <cstdint>

#include "absl/strings/escaping.h"

namespace convlab {
namespace {

const uint8_t* Bytes(absl::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

std::string Hex(const uint8_t (&digest)[SHA256_DIGEST_SIZE]) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
}

}  // namespace

std::string Sha256(absl::string_view text) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, text.size(), Bytes(text));
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_digest(&context, sizeof(digest), digest);
  return Hex(digest);
}

std::string HmacSha256(absl::string_view key, absl::string_view text) {
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, key.size(), Bytes(key));
  hmac_sha256_update(&context, text.size(), Bytes(text));
  uint8_t digest[SHA256_DIGEST_SIZE];
  hmac_sha256_digest(&context, sizeof(digest), digest);
  return Hex(digest);
}

}  // namespace convlab
