#include "reports/importers/nsys_sqlite.h"

#include <filesystem>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/importers/expectations.h"
#include "reports/importers/sqlite_reader.h"
#include "reports/importers/test_files.h"

namespace convlab {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Error(const std::string& content) {
  return ErrorOf(ParseNsysSqlite(content));
}

void ExpectExample(const absl::StatusOr<Profile>& profile) {
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->tool, "nsys");
  const auto& gpu = profile->gpu_activities.entries;
  ASSERT_THAT(gpu, SizeIs(5));
  EXPECT_EQ(gpu[0].name, "void conv<5>(float *)");
  EXPECT_EQ(gpu[0].calls, 2);
  EXPECT_EQ(gpu[0].total_ns, 800);
  EXPECT_EQ(gpu[0].average_ns, 400);
  EXPECT_EQ(gpu[0].min_ns, 200);
  EXPECT_EQ(gpu[0].max_ns, 600);
  EXPECT_EQ(gpu[2].name, "[CUDA memcpy HtoD]");
  EXPECT_EQ(gpu[2].calls, 2);
  EXPECT_EQ(gpu[2].bytes, 5120);
  EXPECT_EQ(gpu[3].name, "[CUDA memcpy DtoH]");
  EXPECT_EQ(gpu[4].name, "[CUDA memset]");
  EXPECT_EQ(gpu[4].bytes, 256);
  EXPECT_THAT(Over90(profile->api_calls),
              ElementsAre("cudaMalloc 90.00", "cudaLaunchKernel 96.00"));
  EXPECT_EQ(profile->api_calls.entries.at(2).name, "cuMemAlloc");
}

TEST(NsysSqlite, ContentAndFile) {
  const std::string content = NsysDatabase();
  EXPECT_TRUE(IsSqlite(content));
  EXPECT_FALSE(IsSqlite("SQLite"));
  ExpectExample(ParseNsysSqlite(content));
  const std::string path = ::testing::TempDir() + "/report.sqlite";
  ASSERT_TRUE(WriteFileAtomically(path, content).ok());
  ExpectExample(ReadNsysSqlite(path));
  EXPECT_EQ(*ReadFile(path), content);
}

TEST(NsysSqlite, TablesWithoutRowsAreNotThere) {
  const auto profile =
      ParseNsysSqlite(NsysDatabase("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL;"
                                   "DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY;"
                                   "DELETE FROM CUPTI_ACTIVITY_KIND_MEMSET;"));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_THAT(profile->gpu_activities.entries, IsEmpty());
  EXPECT_EQ(profile->gpu_activities.missing, "not in the file");
  EXPECT_THAT(profile->api_calls.entries, SizeIs(3));
}

TEST(NsysSqlite, NamesOfOlderExports) {
  const auto profile = ParseNsysSqlite(NsysDatabase(
      "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN demangledName;"));
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->gpu_activities.entries.at(0).name, "conv");
}

TEST(NsysSqlite, OtherDatabases) {
  EXPECT_THAT(Error(SqliteDatabase("CREATE TABLE users (name TEXT);")),
              HasSubstr("its tables are 'users'"));
  EXPECT_THAT(Error(NsysDatabase("DROP TABLE StringIds;")),
              HasSubstr("lacks the table StringIds"));
  EXPECT_THAT(Error(NsysDatabase(
                  "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN end;")),
              HasSubstr("CUPTI_ACTIVITY_KIND_KERNEL: no such column: end"));
}

TEST(NsysSqlite, DamagedValues) {
  EXPECT_THAT(Error(NsysDatabase("DELETE FROM StringIds WHERE id = 2;")),
              HasSubstr("refers to the name '2', which StringIds"));
  EXPECT_THAT(
      Error(NsysDatabase("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 0;")),
      HasSubstr("the database is damaged: CUPTI_ACTIVITY_KIND_KERNEL"));
  EXPECT_THAT(
      Error(NsysDatabase("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = 'x';")),
      HasSubstr("the database is damaged: CUPTI_ACTIVITY_KIND_MEMCPY"));
  EXPECT_THAT(Error(NsysDatabase("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = "
                                 "NULL WHERE correlationId = 3;")),
              HasSubstr("1 of 2 rows of CUPTI_ACTIVITY_KIND_KERNEL lack a "
                        "time or a size"));
  for (const char* const table : {"MEMCPY", "MEMSET"}) {
    EXPECT_THAT(
        Error(NsysDatabase(absl::StrCat(
            "INSERT INTO CUPTI_ACTIVITY_KIND_", table,
            " (start, end, bytes) SELECT start, end, NULL FROM "
            "CUPTI_ACTIVITY_KIND_",
            table, ";UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET copyKind=1;"))),
        HasSubstr("lack a time or a size"))
        << table;
  }
  EXPECT_THAT(Error(NsysDatabase(
                  "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET copyKind = NULL;")),
              HasSubstr("CUPTI_ACTIVITY_KIND_MEMCPY holds '' where a number"));
  EXPECT_THAT(Error(NsysDatabase("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = "
                                 "9223372036854775807, start = 0;")),
              HasSubstr("CUPTI_ACTIVITY_KIND_RUNTIME: integer overflow"));
}

// A row of 4.5 KiB that says it has 4 GiB.
TEST(NsysSqlite, RowsLongerThanTheFileTakeNoMemory) {
  EXPECT_THAT(Error(TestFile("fuzz/nsys_sqlite_huge_row.sqlite")),
              HasSubstr("takes more memory than any file needs"));
  // The next one is read as ever.
  ExpectExample(ParseNsysSqlite(NsysDatabase()));
}

// SQLite's limit is the whole process's, and nobody else's once all are closed.
TEST(NsysSqlite, ReadersThatAreOpenTogetherAddTheirMemory) {
  const auto limit = [] { return sqlite3_hard_heap_limit64(-1); };
  EXPECT_EQ(limit(), 0);
  const std::string content = NsysDatabase();
  auto first = SqliteReader::Parse(content);
  ASSERT_TRUE(first.ok()) << first.status();
  const int64_t one = limit();
  EXPECT_GT(one, static_cast<int64_t>(content.size()));
  auto second = SqliteReader::Parse(content);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_GE(limit() - one, static_cast<int64_t>(content.size()));
  first->reset();
  EXPECT_EQ(limit(), one);
  EXPECT_FALSE(SqliteReader::Parse("x").ok());
  EXPECT_EQ(limit(), one);
  second->reset();
  EXPECT_EQ(limit(), 0);
}

TEST(NsysSqlite, SchemasThatComputeAreRefused) {
  // A row of some bytes would take a gigabyte.
  EXPECT_THAT(
      Error(NsysDatabase(
          "ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME RENAME TO other; CREATE "
          "TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, nameId AS "
          "(length(zeroblob(1000000000)))); INSERT INTO "
          "CUPTI_ACTIVITY_KIND_RUNTIME (start, end) VALUES (1, 2);")),
      HasSubstr("the column 'nameId' of CUPTI_ACTIVITY_KIND_RUNTIME is "
                "computed, not stored"));
  EXPECT_THAT(Error(NsysDatabase("DROP TABLE StringIds; CREATE TABLE StringIds "
                                 "(id, v, value AS (v || 'x') STORED);")),
              HasSubstr("the column 'value' of StringIds is computed"));
  // Views and virtual tables are no tables of nsys.
  EXPECT_THAT(Error(NsysDatabase("DROP TABLE StringIds; CREATE VIEW StringIds "
                                 "AS SELECT 1 AS id, 'x' AS value;")),
              HasSubstr("lacks the table StringIds"));
  EXPECT_THAT(Error(NsysDatabase(absl::StrCat("UPDATE StringIds SET value = '",
                                              std::string(1 << 20, 'x'),
                                              "' WHERE id = 4;"))),
              HasSubstr("string or blob too big"));
}

TEST(NsysSqlite, NumbersOfTwoNamesAreRefused) {
  EXPECT_THAT(
      Error(NsysDatabase("DROP TABLE StringIds; CREATE TABLE StringIds (id, "
                         "value); INSERT INTO StringIds VALUES (2, 'a'), (6, "
                         "'b'), (3, 'c'), (4, 'd'), (7, 'e'), (4, 'd');")),
      HasSubstr("StringIds holds two names of the number '4'"));
  // As many as would take minutes if each met each.
  EXPECT_THAT(
      Error(NsysDatabase(
          "DROP TABLE StringIds; CREATE TABLE StringIds (id, value); WITH "
          "RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
          "20000) INSERT INTO StringIds SELECT 2, 'a' FROM n; WITH RECURSIVE "
          "n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 1, 2, 0, 7, 1, 8, 2, "
          "1 FROM n;")),
      HasSubstr("StringIds holds two names of the number '2'"));
}

TEST(NsysSqlite, NothingIsMadeBesideADatabase) {
  namespace fs = std::filesystem;
  const std::string folder = ::testing::TempDir() + "/wal #?%";
  const std::string path = folder + "/report.sqlite";
  fs::create_directory(folder);
  std::string content = NsysDatabase();
  // The header's mark of a write-ahead log.
  content[18] = content[19] = 2;
  ASSERT_TRUE(WriteFileAtomically(path, content).ok());
  ExpectExample(ReadNsysSqlite(path));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  EXPECT_EQ(*ReadFile(path), content);
  // With a log the file lacks what is in it.
  ASSERT_TRUE(WriteFileAtomically(path + "-wal", "x").ok());
  EXPECT_THAT(ErrorOf(ReadNsysSqlite(path)),
              HasSubstr("the database is not complete"));
}

TEST(NsysSqlite, EveryCutIsRefused) {
  const std::string good = NsysDatabase();
  for (size_t size = 16; size < good.size(); size += 37) {
    EXPECT_THAT(Error(good.substr(0, size)),
                AnyOf(HasSubstr("the database cannot be"),
                      HasSubstr("the database is damaged")))
        << size;
  }
}

}  // namespace
}  // namespace convlab
