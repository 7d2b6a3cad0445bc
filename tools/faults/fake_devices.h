// What the CUDA runtime for machines without a GPU (fake_cuda.cc) knows of its
// devices: which of its calls to refuse, what is in use, and where. CUDA takes
// a pointer, a stream or an event of another device than the current one in
// many calls and fails later, or elsewhere; here the program ends at once with
// a message.
#ifndef TOOLS_FAULTS_FAKE_DEVICES_H_
#define TOOLS_FAULTS_FAKE_DEVICES_H_

#include <cuda_runtime_api.h>

#include <cstddef>

namespace convlab::fake {

// Counts a call of a device that may fail with `error`, and decides whether it
// does. Its place in the code is where it returns to.
inline constexpr int kNoDevice = -2;
cudaError_t Call(const void* place, cudaError_t error, int device);
// That of the calling thread's last refused call, once.
cudaError_t TakeLastError();
// The n-th call from now on fails, and no other; 0: none does.
void RefuseCall(long n);
// How many calls were counted, how many kernels launched, and how many times
// device memory or pinned memory was allocated.
long CallCount();
long LaunchCount();
long AllocationCount();

int DeviceCount();
// Of the calling thread.
int CurrentDevice();
void SetCurrentDevice(int device);
// A number that changes when a device is reset. What is in use stays.
unsigned long long ContextNumber();
void Reset();

// What is in use, by kinds.
inline constexpr char kMemory[] = "device memory", kPinned[] = "pinned memory",
                      kLocked[] = "locked memory", kStream[] = "a stream",
                      kEvent[] = "an event", kGraph[] = "a graph",
                      kGraphExec[] = "an executable graph";

// New memory on the current device, at a multiple of 256 bytes as CUDA's is, or
// a new handle, which is memory too.
void New(void** out, size_t bytes, const char* kind);
// The same on the device of another handle.
void NewBeside(const void* other, void** out, const char* kind);
// Frees it, whatever device is current.
void Delete(void* object, const char* kind);
// The same for memory that somebody else makes and frees.
void Add(void* object, size_t bytes, const char* kind);
void Remove(void* object, const char* kind);

// What the pointer leads to, and of which device it is; null: nothing in use.
const char* KindOf(const void* pointer, int* device);

// Ends the program unless the object is of the kind and of the current device.
// A null stream is.
void Use(const char* call, const void* object, const char* kind);
// The same for memory: the host's, or that of the current device.
void UseMemory(const char* call, const void* pointer);

// A thread's capture of a stream.
void BeginCapture(cudaStream_t stream);
bool IsCaptured(cudaStream_t stream);
// Whether there was one.
bool EndCapture(cudaStream_t stream);

// The kernel behind a function on the host, by its mangled name.
void AddKernel(const void* function, const char* name);
// Its pointers must be null, pinned memory or memory of the current device;
// those within structures are not looked at.
void UseArguments(const void* function, void** arguments);

}  // namespace convlab::fake

#endif  // TOOLS_FAULTS_FAKE_DEVICES_H_
