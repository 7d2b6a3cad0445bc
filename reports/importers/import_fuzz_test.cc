// Files of any tool, recognized by their content.

#include "reports/importers/fuzz_check.h"
#include "reports/importers/import.h"
#include "reports/importers/test_files.h"
#include "tools/fuzz/seeds.h"

namespace convlab {

std::vector<std::string> FuzzSeeds() {
  return {TestFile("nvprof/fa19_naive_api.txt"), TestFile("nsys/kern_sum.csv"),
          TestFile("ncu/details_european_locale.csv"), NsysDatabase(),
          "{\"schema\": \"convlab.run/1\", \"profile\": {\"tool\": \"CUPTI\", "
          "\"api_calls\": {\"entries\": [{\"name\": \"cudaMalloc\", "
          "\"total_ns\": 5}]}}}"};
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  RequireSound(ParseProfile(
      absl::string_view(reinterpret_cast<const char*>(data), size)));
  return 0;
}
