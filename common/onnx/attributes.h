// The attributes of an ONNX node. Errors say what was found and what was
// expected; the caller adds which node it is.
#ifndef COMMON_ONNX_ATTRIBUTES_H_
#define COMMON_ONNX_ATTRIBUTES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "onnx/onnx.pb.h"

namespace convlab {

class Attributes {
 public:
  // `node` must outlive the object.
  explicit Attributes(const onnx::NodeProto& node) : node_(node) {}

  // The attribute's value, or `otherwise` if the node has no such attribute.
  absl::StatusOr<int64_t> Integer(absl::string_view name, int64_t otherwise);
  absl::StatusOr<float> Float(absl::string_view name, float otherwise);
  absl::StatusOr<std::string> Text(absl::string_view name,
                                   const std::string& otherwise);
  absl::StatusOr<std::vector<int64_t>> Integers(
      absl::string_view name, const std::vector<int64_t>& otherwise);
  // The attribute as it is in the file; null if there is none.
  const onnx::AttributeProto* Any(absl::string_view name);

  // Refuses the attribute unless it has this value, or these values, which an
  // absent one has.
  absl::Status Expect(absl::string_view name, int64_t value);
  absl::Status Expect(absl::string_view name, float value);
  absl::Status Expect(absl::string_view name,
                      const std::vector<int64_t>& values);

  // Refuses attributes that none of the functions above asked for.
  absl::Status ExpectNoOthers() const;

 private:
  // Any, of this type.
  absl::StatusOr<const onnx::AttributeProto*> Find(
      absl::string_view name, onnx::AttributeProto::AttributeType type,
      absl::string_view type_name);

  const onnx::NodeProto& node_;
  std::set<std::string> asked_;
};

}  // namespace convlab

#endif  // COMMON_ONNX_ATTRIBUTES_H_
