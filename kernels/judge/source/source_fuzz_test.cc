// The text of contributed files.

#include <cstdlib>

#include "kernels/judge/source/embedded_files.h"
#include "kernels/judge/source/files.h"
#include "kernels/judge/source/source.h"
#include "tools/fuzz/seeds.h"

namespace convlab {

std::vector<std::string> FuzzSeeds() {
  std::vector<std::string> seeds;
  for (const EmbeddedFile& file : TestFiles()) seeds.emplace_back(file.content);
  return seeds;
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (convlab::WithoutComments(text).size() != size) std::abort();
  for (const convlab::Include& include : convlab::Includes(text)) {
    if (include.line < 1) std::abort();
  }
  convlab::FindInterface(convlab::ReadSource(text));
  return 0;
}
