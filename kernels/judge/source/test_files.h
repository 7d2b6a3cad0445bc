// Writes the files of testdata/ where a test can read them.
#ifndef KERNELS_JUDGE_SOURCE_TEST_FILES_H_
#define KERNELS_JUDGE_SOURCE_TEST_FILES_H_

#include <string>

namespace convlab {

// A new empty folder for one test.
std::string NewTestFolder();

// Writes all files of testdata/ into a new folder and returns it.
std::string WriteTestFiles();

// Writes a file into a folder and returns its path.
std::string WriteTestFile(const std::string& folder, const std::string& name,
                          const std::string& content);

}  // namespace convlab

#endif  // KERNELS_JUDGE_SOURCE_TEST_FILES_H_
