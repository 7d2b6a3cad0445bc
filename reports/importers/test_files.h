// Files that the tests and fuzz targets of importers read.
#ifndef REPORTS_IMPORTERS_TEST_FILES_H_
#define REPORTS_IMPORTERS_TEST_FILES_H_

#include <string>

namespace convlab {

// The content of testdata/`name`, which must be there.
std::string TestFile(const std::string& name);

// A database as nsys exports it, small, with a kernel, copies, a memset and API
// calls, after `sql` was run on it.
std::string NsysDatabase(const std::string& sql = "");
// A database on which only `sql` was run.
std::string SqliteDatabase(const std::string& sql);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_TEST_FILES_H_
