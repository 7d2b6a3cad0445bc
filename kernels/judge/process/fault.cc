#include "kernels/judge/process/fault.h"

#include "absl/strings/cord.h"

namespace convlab {
namespace {

constexpr char kPayload[] = "convlab/fault";

}  // namespace

absl::Status KernelFault(Fault fault, absl::string_view message) {
  absl::Status status = absl::AbortedError(message);
  const char value = static_cast<char>(fault);
  status.SetPayload(kPayload, absl::Cord(absl::string_view(&value, 1)));
  return status;
}

Fault FaultOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  return payload ? static_cast<Fault>((*payload)[0]) : Fault::kEnded;
}

}  // namespace convlab
