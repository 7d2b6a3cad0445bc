#include "common/weights/tensor_file.h"

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace convlab {

absl::StatusOr<int64_t> ElementCount(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 0 || __builtin_mul_overflow(count, dimension, &count)) {
      return absl::InvalidArgumentError(
          absl::StrCat("impossible shape ", ShapeString(shape)));
    }
  }
  return count;
}

std::string ShapeString(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

std::string Quoted(absl::string_view name) {
  constexpr size_t kLongest = 60;
  return absl::StrCat("'", absl::CEscape(name.substr(0, kLongest)),
                      name.size() > kLongest ? "..." : "", "'");
}

}  // namespace convlab
