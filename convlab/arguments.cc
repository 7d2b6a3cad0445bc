#include "convlab/arguments.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/accuracy/accuracy_class.h"
#include "common/network/layer.h"
#include "common/status/status.h"
#include "kernels/convolution/convolution.h"

namespace convlab {
namespace {

constexpr int kMostThreads = 4096;

absl::Status Wrong(const char* name, int64_t value, const char* expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, ", expected ", expected));
}

absl::Status CheckSize(const char* name, size_t size, size_t expected) {
  if (size == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, "->struct_size is ", size, ", expected ", expected,
      ": initialize it by its macro, and use the header of this library"));
}

absl::Status Null(const char* name) {
  return absl::InvalidArgumentError(absl::StrCat(name, " is null"));
}

// A piece of memory; empty if it has no bytes.
struct Memory {
  const char* name;
  const void* data;
  int64_t bytes;
  int64_t alignment;

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(data); }
  uintptr_t end() const { return begin() + static_cast<uintptr_t>(bytes); }
};

absl::Status CheckOne(const Memory& memory) {
  if (memory.data == nullptr) return Null(memory.name);
  if (memory.begin() % static_cast<uintptr_t>(memory.alignment) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(memory.name, " is at ", absl::Hex(memory.begin()),
                     ", expected a multiple of ", memory.alignment, " bytes"));
  }
  if (memory.end() < memory.begin()) {
    return absl::InvalidArgumentError(
        absl::StrCat(memory.name, " has ", memory.bytes,
                     " bytes, which reach beyond the last address"));
  }
  return absl::OkStatus();
}

absl::Status CheckApart(const Memory& written, const Memory& other) {
  if (written.begin() >= other.end() || other.begin() >= written.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      written.name, ", which a run writes, overlaps ", other.name,
      ": they have ", written.bytes, " and ", other.bytes, " bytes"));
}

}  // namespace

absl::StatusOr<Operation> ReadProblem(const convlab_problem* problem) {
  if (problem == nullptr) return Null("problem");
  RETURN_IF_ERROR(CheckSize("problem", problem->struct_size, sizeof(*problem)));
  const convlab_problem& p = *problem;
  Operation o;
  o.batch = p.batch, o.channels = p.channels;
  o.height = p.height, o.width = p.width;
  o.filters = p.filters;
  o.kernel_height = p.kernel_height, o.kernel_width = p.kernel_width;
  o.stride_y = p.stride_height, o.stride_x = p.stride_width;
  o.top = p.padding_top, o.bottom = p.padding_bottom;
  o.left = p.padding_left, o.right = p.padding_right;
  if (p.has_bias != 0 && p.has_bias != 1) {
    return Wrong("has_bias", p.has_bias, "0 or 1");
  }
  o.bias = p.has_bias == 1;
  switch (p.activation) {
    case CONVLAB_NO_ACTIVATION:
      o.activation = Activation::kNone;
      break;
    case CONVLAB_RELU:
      o.activation = Activation::kRelu;
      break;
    case CONVLAB_TANH:
      o.activation = Activation::kTanh;
      break;
    default:
      return Wrong("activation", p.activation,
                   "CONVLAB_NO_ACTIVATION, CONVLAB_RELU or CONVLAB_TANH");
  }
  if (p.pool_ceil != 0 && p.pool_ceil != 1) {
    return Wrong("pool_ceil", p.pool_ceil, "0 or 1");
  }
  if (p.pool_size == 0 && (p.pool_stride != 0 || p.pool_ceil != 0)) {
    return Wrong("pool_size", 0, "1 or more with a pool_stride or pool_ceil");
  }
  if (p.pool_size < 0) return Wrong("pool_size", p.pool_size, "0 or more");
  o.pool = {p.pool_size, p.pool_stride, p.pool_ceil == 1};
  if ((p.format & ~(CONVLAB_NHWC | CONVLAB_HALF)) != 0) {
    return Wrong("format", p.format,
                 "0 or a sum of CONVLAB_NHWC and CONVLAB_HALF");
  }
  o.channels_last = (p.format & CONVLAB_NHWC) != 0;
  o.halves = (p.format & CONVLAB_HALF) != 0;
  return o;
}

absl::StatusOr<Target> ReadOptions(const convlab_options* options) {
  if (options == nullptr) return Null("options");
  RETURN_IF_ERROR(CheckSize("options", options->struct_size, sizeof(*options)));
  const convlab_options& given = *options;
  Target target;
  if (given.device < CONVLAB_CPU) {
    return Wrong("device", given.device, "CONVLAB_CPU or a GPU from 0 on");
  }
  if (given.device != CONVLAB_CPU) {
    target.backend = Backend::kCuda;
    target.resources.device = given.device;
  }
  if (given.threads < 0 || given.threads > kMostThreads) {
    return Wrong("threads", given.threads, "0 to 4096");
  }
  constexpr AccuracyClass kClasses[] = {
      AccuracyClass::kFp32, AccuracyClass::kFp32Normwise, AccuracyClass::kTf32,
      AccuracyClass::kFp16};
  if (given.accuracy < CONVLAB_FP32 || given.accuracy > CONVLAB_FP16) {
    return Wrong("accuracy", given.accuracy, "CONVLAB_FP32 to CONVLAB_FP16");
  }
  target.accuracy = kClasses[given.accuracy];
  if ((given.flags & ~(CONVLAB_CAPTURABLE | CONVLAB_TRUST_POINTERS)) != 0) {
    return Wrong("flags", given.flags,
                 "a sum of CONVLAB_CAPTURABLE and CONVLAB_TRUST_POINTERS");
  }
  target.resources.recorded = (given.flags & CONVLAB_CAPTURABLE) != 0;
  if (given.kernel != nullptr) target.kernel = given.kernel;
  return target;
}

absl::Status CheckTensors(const Operation& operation, const Target& target,
                          const PreparedOperation& prepared,
                          const PreparedOperation::Tensors& tensors,
                          size_t workspace_bytes, bool ask_driver) {
  const int64_t size = operation.element_bytes();
  const int64_t needed = prepared.workspace_bytes();
  if (!operation.bias && tensors.bias != nullptr) {
    return absl::InvalidArgumentError(
        "bias is given, but the plan's problem has none");
  }
  if (needed > 0 && workspace_bytes < static_cast<uint64_t>(needed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the workspace has ", workspace_bytes, " bytes, expected ",
                     needed, " or more"));
  }
  const Memory y = {"y", tensors.y, size * operation.output_elements(), size};
  const Memory workspace = {"the workspace", tensors.workspace, needed,
                            PreparedOperation::kWorkspaceAlignment};
  const Memory read[] = {
      {"x", tensors.x, size * operation.input_elements(), size},
      {"weights", tensors.k, size * operation.kernel_elements(), size},
      {"bias", tensors.bias, operation.bias ? size * operation.filters : 0,
       size}};
  const auto check = [&](const Memory& memory) -> absl::Status {
    if (memory.bytes == 0) return absl::OkStatus();
    RETURN_IF_ERROR(CheckOne(memory));
    return ask_driver ? CheckMemory(target, memory.name, memory.data)
                      : absl::OkStatus();
  };
  RETURN_IF_ERROR(check(y));
  RETURN_IF_ERROR(check(workspace));
  for (const Memory& memory : read) RETURN_IF_ERROR(check(memory));
  for (const Memory& memory : read) {
    if (memory.bytes == 0) continue;
    RETURN_IF_ERROR(CheckApart(y, memory));
    if (needed > 0) RETURN_IF_ERROR(CheckApart(workspace, memory));
  }
  return needed > 0 ? CheckApart(y, workspace) : absl::OkStatus();
}

}  // namespace convlab
