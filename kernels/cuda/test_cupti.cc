// A CUPTI for tests. It reports the GPU work that is listed here, in records of
// the newest version. CONVLAB_TEST_CUPTI selects a failure: "attached" or
// "lossy".
#include <cupti.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
using CopyRecord = CUpti_ActivityMemcpy6;
#else
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
#endif

CUpti_BuffersCallbackRequestFunc request_buffer;
CUpti_BuffersCallbackCompleteFunc complete_buffer;

bool Trouble(const char* kind) {
  const char* const trouble = std::getenv("CONVLAB_TEST_CUPTI");
  return trouble != nullptr && std::strcmp(trouble, kind) == 0;
}

// Fills a buffer as the real CUPTI does, one record after another.
class Buffer {
 public:
  Buffer() {
    size_t bytes = 0, max_records = 0;
    request_buffer(&begin_, &bytes, &max_records);
    end_ = begin_;
  }
  ~Buffer() {
    complete_buffer(nullptr, 0, begin_, end_ - begin_, end_ - begin_);
  }

  template <typename Record>
  void Add(const Record& record) {
    std::memcpy(end_, &record, sizeof(record));
    end_ += sizeof(record);
  }

 private:
  uint8_t* begin_ = nullptr;
  uint8_t* end_ = nullptr;
};

KernelRecord Kernel(uint64_t start, uint64_t end, uint32_t correlation) {
  KernelRecord kernel = {};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.name = "_Z6kernelPKfi";
  kernel.start = start;
  kernel.end = end;
  kernel.streamId = 7;
  kernel.correlationId = correlation;
  kernel.gridX = 1, kernel.gridY = 2, kernel.gridZ = 3;
  kernel.blockX = 4, kernel.blockY = 5, kernel.blockZ = 6;
  kernel.registersPerThread = 40;
  kernel.staticSharedMemory = 1024;
  kernel.dynamicSharedMemory = 2048;
  return kernel;
}

CUpti_ActivityAPI Call(CUpti_ActivityKind kind, CUpti_CallbackId function,
                       uint64_t start, uint64_t end, uint32_t correlation) {
  CUpti_ActivityAPI call = {};
  call.kind = kind;
  call.cbid = function;
  call.start = start;
  call.end = end;
  call.threadId = 17;
  call.correlationId = correlation;
  return call;
}

size_t Size(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(KernelRecord);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CopyRecord);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    default:
      return sizeof(CUpti_ActivityAPI);
  }
}

}  // namespace

// Newer than any real version, so that the loader chooses it.
CUptiResult cuptiGetVersion(uint32_t* version) {
  *version = 990203;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "CUPTI_TEST";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  *timestamp = 1000000;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t function,
                                 const char** name) {
  static std::string kept;
  kept = (domain == CUPTI_CB_DOMAIN_RUNTIME_API ? "cuda" : "cu") +
         std::to_string(function) + "_v3020";
  *name = kept.c_str();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM
             ? CUPTI_SUCCESS
             : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiActivityRegisterCallbacks(
    CUpti_BuffersCallbackRequestFunc request,
    CUpti_BuffersCallbackCompleteFunc complete) {
  request_buffer = request;
  complete_buffer = complete;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute, size_t*, void*) {
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind) {
  return Trouble("attached") ? CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                             : CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t,
                                              size_t* dropped) {
  *dropped = Trouble("lossy") ? 3 : 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes,
                                       CUpti_Activity** record) {
  auto* next = reinterpret_cast<uint8_t*>(*record);
  next = next == nullptr ? buffer : next + Size(*record);
  if (next == buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return (*record)->kind == CUPTI_ACTIVITY_KIND_INVALID
             ? CUPTI_ERROR_INVALID_KIND
             : CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t) {
  {
    Buffer buffer;
    buffer.Add(Kernel(1050000, 1090000, 2));
    buffer.Add(Call(CUPTI_ACTIVITY_KIND_DRIVER, 5, 1041000, 1042000, 9));
    CopyRecord copy = {};
    copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    copy.start = 1010000, copy.end = 1011000;
    copy.bytes = 4096;
    copy.streamId = 8;
    copy.correlationId = 1;
    buffer.Add(copy);
  }
  Buffer buffer;
  buffer.Add(Call(CUPTI_ACTIVITY_KIND_RUNTIME, 211, 1040000, 1045000, 2));
  CUpti_ActivityMemset4 memset = {};
  memset.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  memset.start = 1100000, memset.end = 1100500;
  memset.bytes = 512;
  memset.deviceId = 1;
  buffer.Add(memset);
  if (Trouble("lossy")) {
    buffer.Add(Kernel(0, 0, 3));
    buffer.Add(CUpti_ActivityAPI{});  // of no kind
  }
  return CUPTI_SUCCESS;
}
