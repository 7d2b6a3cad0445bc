// IDX files built byte by byte, for tests.
#ifndef COMMON_DATASET_TEST_FILES_H_
#define COMMON_DATASET_TEST_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace convlab {

enum class ByteOrder { kBig, kLittle };

// `header` (magic number and dimensions) as 32-bit integers, then `bytes`.
std::string IdxFile(const std::vector<uint32_t>& header,
                    absl::string_view bytes, ByteOrder order = ByteOrder::kBig);

// `content` as a gzip file.
std::string Gzip(absl::string_view content);

}  // namespace convlab

#endif  // COMMON_DATASET_TEST_FILES_H_
