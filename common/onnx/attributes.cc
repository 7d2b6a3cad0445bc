#include "common/onnx/attributes.h"

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "common/weights/tensor_file.h"

namespace convlab {
namespace {

using onnx::AttributeProto;

template <typename Value>
absl::Status Unexpected(absl::string_view name, const Value& found,
                        const Value& expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("attribute ", name, " is ", found, ", expected ", expected));
}

}  // namespace

const AttributeProto* Attributes::Any(absl::string_view name) {
  asked_.emplace(name);
  for (const AttributeProto& attribute : node_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

absl::StatusOr<const AttributeProto*> Attributes::Find(
    absl::string_view name, AttributeProto::AttributeType type,
    absl::string_view type_name) {
  const AttributeProto* const found = Any(name);
  if (found != nullptr && found->type() != type) {
    return absl::InvalidArgumentError(absl::StrCat(
        "attribute ", name, " is of type ", static_cast<int>(found->type()),
        ", expected ", static_cast<int>(type), ", ", type_name));
  }
  return found;
}

absl::StatusOr<int64_t> Attributes::Integer(absl::string_view name,
                                            int64_t otherwise) {
  ASSIGN_OR_RETURN(const AttributeProto* const found,
                   Find(name, AttributeProto::INT, "an integer"));
  return found == nullptr ? otherwise : found->i();
}

absl::StatusOr<float> Attributes::Float(absl::string_view name,
                                        float otherwise) {
  ASSIGN_OR_RETURN(const AttributeProto* const found,
                   Find(name, AttributeProto::FLOAT, "a number"));
  return found == nullptr ? otherwise : found->f();
}

absl::StatusOr<std::string> Attributes::Text(absl::string_view name,
                                             const std::string& otherwise) {
  ASSIGN_OR_RETURN(const AttributeProto* const found,
                   Find(name, AttributeProto::STRING, "a text"));
  return found == nullptr ? otherwise : found->s();
}

absl::StatusOr<std::vector<int64_t>> Attributes::Integers(
    absl::string_view name, const std::vector<int64_t>& otherwise) {
  ASSIGN_OR_RETURN(const AttributeProto* const found,
                   Find(name, AttributeProto::INTS, "integers"));
  if (found == nullptr) return otherwise;
  return std::vector<int64_t>(found->ints().begin(), found->ints().end());
}

absl::Status Attributes::Expect(absl::string_view name, int64_t value) {
  ASSIGN_OR_RETURN(const int64_t found, Integer(name, value));
  return found == value ? absl::OkStatus() : Unexpected(name, found, value);
}

absl::Status Attributes::Expect(absl::string_view name, float value) {
  ASSIGN_OR_RETURN(const float found, Float(name, value));
  return found == value ? absl::OkStatus() : Unexpected(name, found, value);
}

absl::Status Attributes::Expect(absl::string_view name,
                                const std::vector<int64_t>& values) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> found, Integers(name, values));
  if (found == values) return absl::OkStatus();
  return Unexpected(name, ShapeString(found), ShapeString(values));
}

absl::Status Attributes::ExpectNoOthers() const {
  for (const AttributeProto& attribute : node_.attribute()) {
    if (asked_.count(attribute.name()) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("attribute ", Quoted(attribute.name()),
                     " is not one of this operator's that are known here"));
  }
  return absl::OkStatus();
}

}  // namespace convlab
