// nvprof's summaries: text of both forms, wrapped names, CSV.

#include "reports/importers/fuzz_check.h"
#include "reports/importers/nvprof.h"
#include "reports/importers/test_files.h"
#include "tools/fuzz/seeds.h"

namespace convlab {

std::vector<std::string> FuzzSeeds() {
  return {TestFile("nvprof/text_2017_both.txt"),
          TestFile("nvprof/text_2020_both.txt"),
          TestFile("nvprof/fa19_naive_gpu_wrapped.txt").substr(0, 1500),
          TestFile("nvprof/csv_2017.csv"), TestFile("nvprof/csv_2020.csv")};
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  RequireSound(ParseNvprof(
      absl::string_view(reinterpret_cast<const char*>(data), size)));
  return 0;
}
