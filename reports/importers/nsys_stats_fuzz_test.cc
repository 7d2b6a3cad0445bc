// nsys stats: text, boxes and CSV.

#include "reports/importers/fuzz_check.h"
#include "reports/importers/nsys_stats.h"
#include "reports/importers/test_files.h"
#include "tools/fuzz/seeds.h"

namespace convlab {

std::vector<std::string> FuzzSeeds() {
  return {TestFile("nsys/stats_text_2020.txt"),
          TestFile("nsys/stats_text_2023_2.txt"),
          TestFile("nsys/stats_csv_2022.csv"), TestFile("nsys/kern_sum.csv"),
          TestFile("nsys/stats_box_us_2026.txt")};
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  RequireSound(ParseNsysStats(
      absl::string_view(reinterpret_cast<const char*>(data), size)));
  return 0;
}
