// The functions of convlab.h. No exception leaves them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status/status.h"
#include "convlab/arguments.h"
#include "convlab/include/convlab/convlab.h"
#include "convlab/pool.h"
#include "kernels/cuda/device.h"
#include "kernels/operation/operation.h"
#include "kernels/operation/prepared.h"

namespace convlab {
namespace {

static_assert(static_cast<int>(AccuracyClass::kFp32) == CONVLAB_FP32 &&
              static_cast<int>(AccuracyClass::kFp16) == CONVLAB_FP16);

// Programs that were compiled with an earlier header rely on these.
static_assert(sizeof(convlab_problem) == 136);
static_assert(offsetof(convlab_problem, padding_right) == 104);
static_assert(offsetof(convlab_problem, pool_ceil) == 128);
static_assert(sizeof(convlab_options) == 32);
static_assert(offsetof(convlab_options, kernel) == 24);
static_assert(offsetof(convlab_info, kernel) == 72);
static_assert(offsetof(convlab_info, prepared_bytes) == 80);
static_assert(sizeof(convlab_info) == 96);
// That of version 0.1.
constexpr size_t kFirstInfoSize = offsetof(convlab_info, prepared_bytes);

// Not a string, since an error may be that memory ran out.
thread_local char last_error[512] = "";

convlab_status Fail(convlab_status status, const char* function,
                    absl::string_view message) {
  const absl::string_view parts[] = {function, ": ", message};
  char* end = last_error;
  for (const absl::string_view part : parts) {
    const size_t space =
        static_cast<size_t>(last_error + sizeof(last_error) - 1 - end);
    const size_t count = std::min(part.size(), space);
    std::memcpy(end, part.data(), count);
    end += count;
  }
  *end = '\0';
  return status;
}

convlab_status CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return CONVLAB_INVALID_ARGUMENT;
    case absl::StatusCode::kUnimplemented:
      return CONVLAB_UNSUPPORTED;
    case absl::StatusCode::kUnavailable:
      return CONVLAB_NO_DEVICE;
    case absl::StatusCode::kResourceExhausted:
      return CONVLAB_OUT_OF_MEMORY;
    default:
      return CONVLAB_DEVICE_ERROR;
  }
}

// Runs the body of an interface function, which returns a status.
template <typename Body>
convlab_status Guard(const char* function, const Body& body) noexcept {
  try {
    const absl::Status status = body();
    if (status.ok()) return CONVLAB_OK;
    return Fail(CodeOf(status), function, status.message());
  } catch (const std::bad_alloc&) {
    return Fail(CONVLAB_OUT_OF_MEMORY, function, "out of memory");
  } catch (const std::system_error& error) {
    return Fail(CONVLAB_OUT_OF_MEMORY, function, error.what());
  } catch (const std::exception& error) {
    // Vectors of more elements than an address space has.
    return Fail(CONVLAB_OUT_OF_MEMORY, function, error.what());
  }
}

}  // namespace
}  // namespace convlab

struct convlab_plan {
  convlab::Operation operation;
  convlab::Target target;
  bool trusts_pointers = false;
  double estimated_cudnn_ns = 0;
  uint64_t context = 0;                 // of the GPU, when the plan was made
  std::shared_ptr<convlab::Pool> pool;  // of the CPU
  std::unique_ptr<convlab::PreparedOperation> prepared;
  std::mutex mutex;  // of the GPU: one thread at a time queues work

  std::unique_lock<std::mutex> TakeTurn() {
    return pool == nullptr ? std::unique_lock<std::mutex>(mutex)
                           : pool->TakeTurn();
  }
  convlab::Planned planned() const {
    return {operation, target, *prepared, !trusts_pointers};
  }
  // Whether a call may queue work in the stream.
  absl::Status CheckStream(convlab::Stream stream) const {
    const bool recordable = prepared->recordable();
    if (trusts_pointers && recordable) return absl::OkStatus();
    return convlab::CheckQueue(target, context, recordable, stream);
  }
};

namespace convlab {
namespace {

// convlab_run, and with prepared weights convlab_run_prepared.
convlab_status Run(const char* function, convlab_plan* plan,
                   const PreparedOperation::Tensors& tensors, bool prepared,
                   size_t workspace_bytes, void* stream) {
  return Guard(function, [&]() -> absl::Status {
    if (plan == nullptr) return absl::InvalidArgumentError("plan is null");
    const auto queue = static_cast<Stream>(stream);
    RETURN_IF_ERROR(plan->CheckStream(queue));
    RETURN_IF_ERROR(
        CheckTensors(plan->planned(), tensors, prepared, workspace_bytes));
    const std::unique_lock<std::mutex> turn = plan->TakeTurn();
    return prepared ? plan->prepared->RunPrepared(tensors, queue)
                    : plan->prepared->Run(tensors, queue);
  });
}

}  // namespace
}  // namespace convlab

using convlab::Guard;

extern "C" {

const char* convlab_version(void) { return CONVLAB_VERSION; }

const char* convlab_status_name(convlab_status status) {
  switch (status) {
    case CONVLAB_OK:
      return "ok";
    case CONVLAB_INVALID_ARGUMENT:
      return "invalid argument";
    case CONVLAB_UNSUPPORTED:
      return "unsupported";
    case CONVLAB_NO_DEVICE:
      return "no device";
    case CONVLAB_OUT_OF_MEMORY:
      return "out of memory";
    case CONVLAB_DEVICE_ERROR:
      return "device error";
    default:
      return "unknown status";
  }
}

const char* convlab_last_error(void) { return convlab::last_error; }

int32_t convlab_count_gpus(void) {
  int32_t count = 0;
  const convlab_status status = Guard("convlab_count_gpus", [&] {
    count = convlab::cuda::CountDevices();
    return absl::OkStatus();
  });
  return status == CONVLAB_OK ? count : 0;
}

convlab_status convlab_plan_create(const convlab_problem* problem,
                                   const convlab_options* options,
                                   convlab_plan** plan) {
  return Guard("convlab_plan_create", [&]() -> absl::Status {
    if (plan == nullptr) return absl::InvalidArgumentError("plan is null");
    *plan = nullptr;
    auto made = std::make_unique<convlab_plan>();
    ASSIGN_OR_RETURN(made->operation, convlab::ReadProblem(problem));
    ASSIGN_OR_RETURN(made->target, convlab::ReadOptions(options));
    made->trusts_pointers = (options->flags & CONVLAB_TRUST_POINTERS) != 0;
    RETURN_IF_ERROR(convlab::CheckOperation(made->operation));
    RETURN_IF_ERROR(convlab::CheckAddressable(made->operation));
    if (made->target.backend == convlab::Backend::kCpu) {
      made->pool = convlab::FindPool(options->threads);
      made->target.resources.workers = &made->pool->workers;
    }
    ASSIGN_OR_RETURN(made->prepared,
                     convlab::PrepareOperation(made->operation, made->target));
    made->context = convlab::ContextOf(made->target);
    ASSIGN_OR_RETURN(made->estimated_cudnn_ns,
                     convlab::EstimateCudnnNs(made->operation, made->target));
    *plan = made.release();
    return absl::OkStatus();
  });
}

void convlab_plan_destroy(convlab_plan* plan) { delete plan; }

convlab_status convlab_plan_query(const convlab_plan* plan,
                                  convlab_info* info) {
  return Guard("convlab_plan_query", [&]() -> absl::Status {
    if (plan == nullptr) return absl::InvalidArgumentError("plan is null");
    if (info == nullptr) return absl::InvalidArgumentError("info is null");
    if (info->struct_size < convlab::kFirstInfoSize) {
      return absl::InvalidArgumentError(absl::StrCat(
          "info->struct_size is ", info->struct_size, ", expected ",
          sizeof(convlab_info), ": initialize it by CONVLAB_INFO_INIT"));
    }
    const convlab::Operation& o = plan->operation;
    convlab_info all = CONVLAB_INFO_INIT;
    all.struct_size = info->struct_size;
    all.workspace_bytes = plan->prepared->workspace_bytes();
    all.output_height = o.output_height();
    all.output_width = o.output_width();
    all.input_bytes = o.element_bytes() * o.input_elements();
    all.weight_bytes = o.element_bytes() * o.kernel_elements();
    all.output_bytes = o.element_bytes() * o.output_elements();
    all.estimated_ns = plan->prepared->estimated_ns();
    all.accuracy = static_cast<int32_t>(plan->prepared->accuracy());
    all.capturable = plan->target.backend == convlab::Backend::kCuda &&
                     plan->prepared->recordable();
    all.kernel = plan->prepared->kernel().c_str();
    all.prepared_bytes = plan->prepared->filter_bytes();
    all.estimated_cudnn_ns = plan->estimated_cudnn_ns;
    // An earlier header has fewer fields.
    std::memcpy(info, &all, std::min(info->struct_size, sizeof(all)));
    return absl::OkStatus();
  });
}

convlab_status convlab_run(convlab_plan* plan, const void* x,
                           const void* weights, const void* bias, void* y,
                           void* workspace, size_t workspace_bytes,
                           void* stream) {
  return convlab::Run("convlab_run", plan, {x, weights, bias, y, workspace},
                      /*prepared=*/false, workspace_bytes, stream);
}

convlab_status convlab_prepare_weights(convlab_plan* plan, const void* weights,
                                       void* prepared, size_t prepared_bytes,
                                       void* stream) {
  return Guard("convlab_prepare_weights", [&]() -> absl::Status {
    if (plan == nullptr) return absl::InvalidArgumentError("plan is null");
    const auto queue = static_cast<convlab::Stream>(stream);
    RETURN_IF_ERROR(plan->CheckStream(queue));
    RETURN_IF_ERROR(convlab::CheckFilters(plan->planned(), weights, prepared,
                                          prepared_bytes));
    const std::unique_lock<std::mutex> turn = plan->TakeTurn();
    return plan->prepared->PrepareFilters(weights, prepared, queue);
  });
}

convlab_status convlab_run_prepared(convlab_plan* plan, const void* x,
                                    const void* prepared, const void* bias,
                                    void* y, void* workspace,
                                    size_t workspace_bytes, void* stream) {
  return convlab::Run("convlab_run_prepared", plan,
                      {x, prepared, bias, y, workspace}, /*prepared=*/true,
                      workspace_bytes, stream);
}

}  // extern "C"
