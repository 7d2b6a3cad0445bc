// A shared library for library_test. Like cuDNN, it opens its part by name.
#include <dlfcn.h>

extern "C" int TestLibraryVersion() { return VERSION; }

extern "C" int TestLibraryPartVersion() {
  void* const part = dlopen("libconvlab_test_part.so", RTLD_LAZY);
  if (part == nullptr) return -1;
  return reinterpret_cast<int (*)()>(dlsym(part, "PartVersion"))();
}
