// Shared libraries that people hand in.

#include <elf.h>

#include <cstdlib>
#include <string>

#include "kernels/judge/source/library_file.h"
#include "kernels/judge/source/test_library.h"
#include "tools/fuzz/seeds.h"

namespace convlab {

std::vector<std::string> FuzzSeeds() {
  return {TestLibrary("convlab_kernel"), TestLibrary("another_kernel")};
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view content(reinterpret_cast<const char*>(data), size);
  const auto status = convlab::CheckKernelLibrary(content);
  if (!status.ok() && !absl::IsInvalidArgument(status)) std::abort();
  if (convlab::ConstantBytes(content) < 0) std::abort();
  return 0;
}
