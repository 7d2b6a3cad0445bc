// SQLite databases of nsys.

#include "reports/importers/fuzz_check.h"
#include "reports/importers/nsys_sqlite.h"
#include "reports/importers/test_files.h"
#include "tools/fuzz/seeds.h"

namespace convlab {

std::vector<std::string> FuzzSeeds() {
  return {NsysDatabase(), SqliteDatabase("CREATE TABLE a (b);")};
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  RequireSound(ParseNsysSqlite(
      absl::string_view(reinterpret_cast<const char*>(data), size)));
  return 0;
}
