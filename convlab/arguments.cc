#include "convlab/arguments.h"

#include <cstdint>
#include <initializer_list>

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

// A piece of memory; empty if it has no bytes. `alignment` is a power of two.
struct Memory {
  const char* name;
  const void* data;
  int64_t bytes;
  int64_t alignment;

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(data); }
  uintptr_t end() const { return begin() + static_cast<uintptr_t>(bytes); }
  bool is_aligned() const {
    return (begin() & static_cast<uintptr_t>(alignment - 1)) == 0;
  }
  bool overlaps(const Memory& other) const {
    return bytes > 0 && other.bytes > 0 && begin() < other.end() &&
           other.begin() < end();
  }
};

absl::Status CheckOne(const Memory& memory) {
  if (memory.data == nullptr) return Null(memory.name);
  if (!memory.is_aligned()) {
    return absl::InvalidArgumentError(
        absl::StrCat(memory.name, " is at 0x", absl::Hex(memory.begin()),
                     ", expected a multiple of ", memory.alignment, " bytes"));
  }
  if (memory.end() < memory.begin()) {
    return absl::InvalidArgumentError(
        absl::StrCat(memory.name, " has ", memory.bytes,
                     " bytes, which reach beyond the last address"));
  }
  return absl::OkStatus();
}

absl::Status Overlap(const Memory& written, const Memory& other) {
  return absl::InvalidArgumentError(absl::StrCat(
      written.name, ", which the call writes, overlaps ", other.name,
      ": they have ", written.bytes, " and ", other.bytes, " bytes"));
}

// Of all that a call writes and all that it reads.
absl::Status CheckMemories(const Planned& plan,
                           std::initializer_list<Memory> written,
                           std::initializer_list<Memory> read) {
  for (const auto* const memories : {&written, &read}) {
    for (const Memory& memory : *memories) {
      if (memory.bytes == 0) continue;
      RETURN_IF_ERROR(CheckOne(memory));
      if (!plan.ask_driver) continue;
      RETURN_IF_ERROR(CheckMemory(plan.target, memory.name, memory.data));
    }
  }
  for (const Memory* one = written.begin(); one != written.end(); ++one) {
    for (const Memory* other = one + 1; other != written.end(); ++other) {
      if (one->overlaps(*other)) return Overlap(*one, *other);
    }
    for (const Memory& other : read) {
      if (one->overlaps(other)) return Overlap(*one, other);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRoom(const char* name, size_t bytes, int64_t needed) {
  if (bytes >= static_cast<uint64_t>(needed)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, " has ", bytes, " bytes, expected ", needed, " or more"));
}

constexpr int64_t kAlignment = PreparedOperation::kWorkspaceAlignment;

Memory PreparedFilters(const Planned& plan, const void* filters) {
  return {"prepared", filters, plan.prepared.filter_bytes(), kAlignment};
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

absl::Status CheckAddressable(const Operation& operation) {
  constexpr int64_t kMost = int64_t{1} << 47;
  const struct {
    const char* name;
    int64_t elements;
  } tensors[] = {{"x", operation.input_elements()},
                 {"weights", operation.kernel_elements()},
                 {"y", operation.output_elements()}};
  for (const auto& [name, elements] : tensors) {
    if (elements > kMost / operation.element_bytes()) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, " has ", elements, " elements of ", operation.element_bytes(),
          " bytes, more than a process can address"));
    }
  }
  return absl::OkStatus();
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

absl::Status CheckTensors(const Planned& plan,
                          const PreparedOperation::Tensors& tensors,
                          bool prepared_filters, size_t workspace_bytes) {
  const Operation& o = plan.operation;
  const int64_t size = o.element_bytes();
  const int64_t needed = plan.prepared.workspace_bytes();
  if (!o.bias && tensors.bias != nullptr) {
    return absl::InvalidArgumentError(
        "bias is given, but the plan's problem has none");
  }
  if (needed > 0) {
    RETURN_IF_ERROR(CheckRoom("the workspace", workspace_bytes, needed));
  }
  const Memory filters =
      prepared_filters
          ? PreparedFilters(plan, tensors.k)
          : Memory{"weights", tensors.k, size * o.kernel_elements(), size};
  return CheckMemories(
      plan,
      {{"y", tensors.y, size * o.output_elements(), size},
       {"the workspace", tensors.workspace, needed, kAlignment}},
      {{"x", tensors.x, size * o.input_elements(), size},
       filters,
       {"bias", tensors.bias, o.bias ? size * o.filters : 0, size}});
}

absl::Status CheckFilters(const Planned& plan, const void* k,
                          const void* filters, size_t bytes) {
  const int64_t size = plan.operation.element_bytes();
  RETURN_IF_ERROR(CheckRoom("prepared", bytes, plan.prepared.filter_bytes()));
  return CheckMemories(
      plan, {PreparedFilters(plan, filters)},
      {{"weights", k, size * plan.operation.kernel_elements(), size}});
}

}  // namespace convlab
