#include "kernels/cuda/trace.h"

#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/library.h"

namespace convlab::cuda {
namespace {

// CUPTI's records grow at their ends from version to version: the number in a
// record's name rises, and earlier fields keep their offsets. These versions
// have all fields that are needed, and the headers of both CUDA 12 and 13
// declare them; records of newer libraries are read through them too.
using KernelRecord = CUpti_ActivityKernel8;
using CopyRecord = CUpti_ActivityMemcpy5;
using MemsetRecord = CUpti_ActivityMemset4;

// Activities of the host's calls and of the GPU's work.
constexpr CUpti_ActivityKind kHostKinds[] = {CUPTI_ACTIVITY_KIND_RUNTIME,
                                             CUPTI_ACTIVITY_KIND_DRIVER};
constexpr CUpti_ActivityKind kGpuKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMSET};

// Room for about 40,000 kernels or 200,000 calls; there may be many buffers.
constexpr size_t kBufferBytes = size_t{8} << 20;

struct Functions {
  decltype(cuptiActivityRegisterCallbacks)* register_callbacks = nullptr;
  decltype(cuptiActivitySetAttribute)* set_attribute = nullptr;
  decltype(cuptiSetThreadIdType)* set_thread_id_type = nullptr;
  decltype(cuptiActivityEnable)* enable = nullptr;
  decltype(cuptiActivityDisable)* disable = nullptr;
  decltype(cuptiActivityFlushAll)* flush_all = nullptr;
  decltype(cuptiActivityGetNextRecord)* next_record = nullptr;
  decltype(cuptiActivityGetNumDroppedRecords)* dropped_records = nullptr;
  decltype(cuptiGetTimestamp)* timestamp = nullptr;
  decltype(cuptiGetCallbackName)* callback_name = nullptr;
  decltype(cuptiGetResultString)* result_string = nullptr;
};

// The data that CUPTI's callbacks collect, possibly on a thread of CUPTI's.
// Times are CUPTI's own, and kernels' names are mangled.
struct Records {
  std::vector<GpuActivity> gpu;
  std::vector<CUpti_ActivityAPI> api;
  int64_t untimed = 0;     // CUPTI could not keep their times
  int64_t unreadable = 0;  // buffers that hold more than could be read
};

struct Tracer {
  Functions functions;
  std::string version;
  uint64_t start = 0;
  // Guards the records. It is never held during a call of CUPTI, because a
  // flush waits for the callbacks.
  std::mutex mutex;
  Records records;
};

// Never destroyed: CUPTI may call back until the process ends.
Tracer& GetTracer() {
  static Tracer* const tracer = new Tracer;
  return *tracer;
}

LibraryVersion Version(void* handle) {
  const auto get_version = reinterpret_cast<decltype(cuptiGetVersion)*>(
      dlsym(handle, "cuptiGetVersion"));
  uint32_t number = 0;
  if (get_version == nullptr || get_version(&number) != CUPTI_SUCCESS) {
    return {};
  }
  // 130001 for the first update of CUDA 13.0; CUDA 12 had 19 to 28.
  const int version = static_cast<int>(number);
  return version >= 10000 ? LibraryVersion{version / 10000, version / 100 % 100,
                                           version % 100}
                          : LibraryVersion{version, 0, 0};
}

absl::Status Load(Tracer& tracer) {
  // Enumerations are those of this header's major version.
  static const std::string* const file =
      new std::string(absl::StrCat("libcupti.so.", CUDA_VERSION / 1000));
  ASSIGN_OR_RETURN(const Library* library,
                   OpenLibrary({"CUPTI", file->c_str(), Version, {}}));
  tracer.version = ToString(library->version);
  Functions& f = tracer.functions;
  const auto load = [&](const char* name, auto*& function) {
    return LoadFunction(*library, name, function);
  };
  RETURN_IF_ERROR(load("cuptiActivityRegisterCallbacks", f.register_callbacks));
  RETURN_IF_ERROR(load("cuptiActivitySetAttribute", f.set_attribute));
  RETURN_IF_ERROR(load("cuptiSetThreadIdType", f.set_thread_id_type));
  RETURN_IF_ERROR(load("cuptiActivityEnable", f.enable));
  RETURN_IF_ERROR(load("cuptiActivityDisable", f.disable));
  RETURN_IF_ERROR(load("cuptiActivityFlushAll", f.flush_all));
  RETURN_IF_ERROR(load("cuptiActivityGetNextRecord", f.next_record));
  RETURN_IF_ERROR(load("cuptiActivityGetNumDroppedRecords", f.dropped_records));
  RETURN_IF_ERROR(load("cuptiGetTimestamp", f.timestamp));
  RETURN_IF_ERROR(load("cuptiGetCallbackName", f.callback_name));
  return load("cuptiGetResultString", f.result_string);
}

absl::Status CuptiStatus(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return absl::OkStatus();
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    return absl::UnavailableError(
        "another profiler is attached to this process, and CUPTI serves only "
        "one");
  }
  const char* reason = nullptr;
  GetTracer().functions.result_string(result, &reason);
  return absl::UnavailableError(
      absl::StrCat(call, ": ", reason == nullptr ? "unknown error" : reason));
}

const char* CopyName(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "[CUDA memcpy HtoD]";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "[CUDA memcpy DtoH]";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "[CUDA memcpy DtoD]";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return "[CUDA memcpy HtoH]";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "[CUDA memcpy PtoP]";
    default:  // to and from arrays, which this project does not use
      return "[CUDA memcpy]";
  }
}

// Copies the fields that all records of GPU work have.
template <typename Record>
GpuActivity Activity(const Record& record, GpuActivity::Kind kind,
                     const char* name) {
  GpuActivity activity;
  activity.kind = kind;
  activity.name = name == nullptr ? "unknown" : name;
  activity.start_ns = static_cast<int64_t>(record.start);
  activity.end_ns = static_cast<int64_t>(record.end);
  activity.device = record.deviceId;
  activity.stream = record.streamId;
  activity.correlation = record.correlationId;
  return activity;
}

GpuActivity KernelActivity(const KernelRecord& record) {
  GpuActivity activity =
      Activity(record, GpuActivity::Kind::kKernel, record.name);
  activity.grid = {record.gridX, record.gridY, record.gridZ};
  activity.block = {record.blockX, record.blockY, record.blockZ};
  activity.registers_per_thread = record.registersPerThread;
  activity.static_shared_bytes = record.staticSharedMemory;
  activity.dynamic_shared_bytes = record.dynamicSharedMemory;
  return activity;
}

// Both are 0 if CUPTI had no memory for them.
bool HasTimes(int64_t start_ns, int64_t end_ns) {
  return start_ns > 0 && end_ns >= start_ns;
}

void Take(const CUpti_Activity* record, Records& records) {
  const auto take_gpu = [&](GpuActivity activity) {
    if (HasTimes(activity.start_ns, activity.end_ns)) {
      records.gpu.push_back(std::move(activity));
    } else {
      ++records.untimed;
    }
  };
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      take_gpu(KernelActivity(*reinterpret_cast<const KernelRecord*>(record)));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = *reinterpret_cast<const CopyRecord*>(record);
      GpuActivity activity =
          Activity(copy, GpuActivity::Kind::kCopy, CopyName(copy.copyKind));
      activity.bytes = static_cast<int64_t>(copy.bytes);
      take_gpu(std::move(activity));
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& memset = *reinterpret_cast<const MemsetRecord*>(record);
      GpuActivity activity =
          Activity(memset, GpuActivity::Kind::kMemset, "[CUDA memset]");
      activity.bytes = static_cast<int64_t>(memset.bytes);
      take_gpu(std::move(activity));
      break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& call = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
      if (HasTimes(call.start, call.end)) {
        records.api.push_back(call);
      } else {
        ++records.untimed;
      }
      break;
    }
    default:
      break;
  }
}

// CUPTI's callbacks.
void CUPTIAPI RequestBuffer(uint8_t** buffer, size_t* bytes,
                            size_t* max_records) {
  // Memory that the system zeroes when it is first touched. CUPTI would zero
  // the buffer at once, in the middle of a call of the program. The memory is
  // aligned for any type. Without memory, CUPTI drops records and counts them.
  *buffer = static_cast<uint8_t*>(std::calloc(kBufferBytes, 1));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // as many as fit
}

void CUPTIAPI CompleteBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t,
                             size_t valid_bytes) {
  Tracer& tracer = GetTracer();
  Records records;
  CUpti_Activity* record = nullptr;
  CUptiResult result = CUPTI_ERROR_MAX_LIMIT_REACHED;
  if (valid_bytes > 0) {
    while ((result = tracer.functions.next_record(buffer, valid_bytes,
                                                  &record)) == CUPTI_SUCCESS) {
      Take(record, records);
    }
  }
  std::free(buffer);
  const std::lock_guard<std::mutex> lock(tracer.mutex);
  Records& all = tracer.records;
  std::move(records.gpu.begin(), records.gpu.end(),
            std::back_inserter(all.gpu));
  all.api.insert(all.api.end(), records.api.begin(), records.api.end());
  all.untimed += records.untimed;
  // The limit is the buffer's end.
  all.unreadable += result != CUPTI_ERROR_MAX_LIMIT_REACHED;
}

absl::Status Enable(const Functions& f) {
  static bool registered = false;
  if (!registered) {
    RETURN_IF_ERROR(
        CuptiStatus(f.register_callbacks(RequestBuffer, CompleteBuffer),
                    "cuptiActivityRegisterCallbacks"));
    registered = true;
  }
  // If CUPTI refuses this, it zeroes the buffers itself.
  uint8_t zeroed = 1;
  size_t size = sizeof(zeroed);
  f.set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size,
                  &zeroed);
  RETURN_IF_ERROR(
      CuptiStatus(f.set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM),
                  "cuptiSetThreadIdType"));
  for (const CUpti_ActivityKind kind : kGpuKinds) {
    RETURN_IF_ERROR(CuptiStatus(f.enable(kind), "cuptiActivityEnable"));
  }
  for (const CUpti_ActivityKind kind : kHostKinds) {
    RETURN_IF_ERROR(CuptiStatus(f.enable(kind), "cuptiActivityEnable"));
  }
  return absl::OkStatus();
}

// Disables kinds that were not enabled too, which is harmless.
template <size_t count>
void Disable(const Functions& f, const CUpti_ActivityKind (&kinds)[count]) {
  for (const CUpti_ActivityKind kind : kinds) f.disable(kind);
}

// Demangles a function's name; returns `name` if it is not a mangled C++ name.
std::string Demangle(const std::string& name) {
  int status = 0;
  char* const demangled =
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 ? demangled : name;
  std::free(demangled);
  return result;
}

std::string CallName(const Functions& f, const CUpti_ActivityAPI& call) {
  const char* name = nullptr;
  const CUpti_CallbackDomain domain = call.kind == CUPTI_ACTIVITY_KIND_DRIVER
                                          ? CUPTI_CB_DOMAIN_DRIVER_API
                                          : CUPTI_CB_DOMAIN_RUNTIME_API;
  if (f.callback_name(domain, call.cbid, &name) != CUPTI_SUCCESS ||
      name == nullptr) {
    return "unknown";
  }
  return ApiName(name);
}

// Converts records to activities with readable names and with times since the
// start.
Activities MakeActivities(const Tracer& tracer, Records records) {
  Activities activities;
  activities.tool = "CUPTI";
  activities.version = tracer.version;
  activities.process = getpid();
  activities.gpu = std::move(records.gpu);
  const auto origin = static_cast<int64_t>(tracer.start);
  std::map<std::string, std::string> demangled;
  for (GpuActivity& activity : activities.gpu) {
    activity.start_ns -= origin;
    activity.end_ns -= origin;
    std::string& name = demangled[activity.name];
    if (name.empty()) name = Demangle(activity.name);
    activity.name = name;
  }
  for (const CUpti_ActivityAPI& call : records.api) {
    activities.api.push_back({CallName(tracer.functions, call),
                              static_cast<int64_t>(call.start) - origin,
                              static_cast<int64_t>(call.end) - origin,
                              call.threadId, call.correlationId});
  }
  return activities;
}

}  // namespace

absl::Status StartTrace() {
  Tracer& tracer = GetTracer();
  RETURN_IF_ERROR(Load(tracer));
  {
    const std::lock_guard<std::mutex> lock(tracer.mutex);
    tracer.records = {};
  }
  const Functions& f = tracer.functions;
  RETURN_IF_ERROR(CuptiStatus(f.timestamp(&tracer.start), "cuptiGetTimestamp"));
  absl::Status status = Enable(f);
  if (!status.ok()) {
    Disable(f, kHostKinds);
    Disable(f, kGpuKinds);
  }
  return status;
}

absl::StatusOr<Activities> StopTrace() {
  Tracer& tracer = GetTracer();
  const Functions& f = tracer.functions;
  // This comes first, so that the following calls are not in the trace.
  Disable(f, kHostKinds);
  const absl::Status synchronized = Synchronize();
  const CUptiResult flushed = f.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  Disable(f, kGpuKinds);
  RETURN_IF_ERROR(synchronized);
  RETURN_IF_ERROR(CuptiStatus(flushed, "cuptiActivityFlushAll"));
  size_t dropped = 0;
  RETURN_IF_ERROR(CuptiStatus(f.dropped_records(nullptr, 0, &dropped),
                              "cuptiActivityGetNumDroppedRecords"));
  Records records;
  {
    const std::lock_guard<std::mutex> lock(tracer.mutex);
    records = std::move(tracer.records);
    tracer.records = {};
  }
  std::vector<std::string> missing;
  const auto add = [&](int64_t count, const char* what) {
    if (count > 0) missing.push_back(absl::StrCat(what, ": ", count));
  };
  add(static_cast<int64_t>(dropped), "records that CUPTI dropped");
  add(records.untimed, "records without times");
  add(records.unreadable, "buffers not read to their end");
  Activities activities = MakeActivities(tracer, std::move(records));
  activities.missing = absl::StrJoin(missing, "; ");
  return activities;
}

}  // namespace convlab::cuda
