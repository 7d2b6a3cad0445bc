#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/convolution/variants.h"

namespace convlab {

absl::StatusOr<const Variant*> FindVariant(Backend backend,
                                           absl::string_view name) {
  std::vector<std::string> names;
  bool elsewhere = false;
  for (const Variant* variant : Variants()) {
    const bool same_name = variant->name == name;
    if (variant->backend != backend) {
      elsewhere |= same_name;
    } else if (same_name) {
      return variant;
    } else {
      names.push_back(variant->name);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      elsewhere ? "no " : "unknown ", "variant '", name, "' on the ",
      Name(backend), ": expected one of ", absl::StrJoin(names, ", ")));
}

int Rung(const Variant& variant) {
  int rung = 0;
  for (const Variant* other : Variants()) {
    rung += other->backend == variant.backend;
    if (other == &variant) return rung;
  }
  return 0;
}

}  // namespace convlab
