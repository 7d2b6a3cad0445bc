// ncu's details and raw pages.

#include "reports/importers/fuzz_check.h"
#include "reports/importers/ncu.h"
#include "reports/importers/test_files.h"
#include "tools/fuzz/seeds.h"

namespace convlab {

std::vector<std::string> FuzzSeeds() {
  return {TestFile("ncu/details_2021.csv"), TestFile("ncu/details_2025.csv"),
          TestFile("ncu/raw_2024.csv"),
          TestFile("ncu/details_european_locale.csv")};
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  RequireSound(
      ParseNcu(absl::string_view(reinterpret_cast<const char*>(data), size)));
  return 0;
}
