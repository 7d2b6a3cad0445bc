#include "kernels/judge/source/test_files.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "kernels/judge/source/embedded_files.h"

namespace convlab {

std::string NewTestFolder() {
  const char* const root = getenv("TEST_TMPDIR");
  std::string folder =
      std::string(root == nullptr ? "/tmp" : root) + "/judge-XXXXXX";
  return mkdtemp(folder.data()) == nullptr ? "" : folder;
}

std::string WriteTestFile(const std::string& folder, const std::string& name,
                          const std::string& content) {
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

std::string WriteTestFiles() {
  std::string folder = NewTestFolder();
  for (const EmbeddedFile& file : TestFiles()) {
    WriteTestFile(folder, file.name, file.content);
  }
  return folder;
}

}  // namespace convlab
