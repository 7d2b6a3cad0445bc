// Digests of text, as 64 lower-case hexadecimal digits.
#ifndef COMMON_HASH_HASH_H_
#define COMMON_HASH_HASH_H_

#include <string>

#include "absl/strings/string_view.h"

namespace convlab {

// SHA-256 (FIPS 180-4).
std::string Sha256(absl::string_view text);

// HMAC with SHA-256 (RFC 2104), which only a holder of the key can compute.
std::string HmacSha256(absl::string_view key, absl::string_view text);

}  // namespace convlab

#endif  // COMMON_HASH_HASH_H_
