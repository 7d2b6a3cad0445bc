#include "reports/importers/test_files.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "sqlite3.h"

namespace convlab {
namespace {

void Require(bool holds, const char* message) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", message);
  std::abort();
}

}  // namespace

std::string TestFile(const std::string& name) {
  const auto content = ReadFile("reports/importers/testdata/" + name);
  Require(content.ok(), content.status().ToString().c_str());
  return *content;
}

std::string SqliteDatabase(const std::string& sql) {
  sqlite3* database = nullptr;
  sqlite3_open(":memory:", &database);
  char* error = nullptr;
  sqlite3_exec(database, absl::StrCat("PRAGMA page_size = 512;", sql).c_str(),
               nullptr, nullptr, &error);
  Require(error == nullptr, error);
  sqlite3_int64 size = 0;
  unsigned char* const bytes = sqlite3_serialize(database, "main", &size, 0);
  std::string content(reinterpret_cast<char*>(bytes), size);
  sqlite3_free(bytes);
  sqlite3_close(database);
  return content;
}

std::string NsysDatabase(const std::string& sql) {
  return SqliteDatabase(absl::StrCat(
      R"(
      CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
      INSERT INTO StringIds VALUES (1, 'conv'), (2, 'void conv<5>(float *)'),
        (3, 'cudaMalloc_v3020'), (4, 'cudaLaunchKernel_v7000'),
        (5, 'pool'), (6, 'pool(float *)'), (7, 'cuMemAlloc_v2');
      CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER,
        deviceId INTEGER, streamId INTEGER, correlationId INTEGER,
        gridX INTEGER, demangledName INTEGER, shortName INTEGER);
      INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
        (100, 700, 0, 7, 1, 8, 2, 1), (1000, 1400, 0, 7, 2, 8, 6, 5),
        (2000, 2200, 0, 7, 3, 8, 2, 1);
      CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER,
        correlationId INTEGER, nameId INTEGER);
      INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (0, 900, 0, 3),
        (900, 910, 1, 4), (910, 930, 2, 4), (930, 960, 3, 4), (960, 1000, 4, 7);
      CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER,
        bytes INTEGER, copyKind INTEGER);
      INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (10, 60, 4096, 1),
        (60, 90, 1024, 1), (3000, 3020, 512, 2);
      CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER,
        bytes INTEGER);
      INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (95, 98, 256);
      )",
      sql));
}

}  // namespace convlab
