// The translation unit of a contributed kernel: what the judge puts round the
// file that its owner wrote.
#ifndef KERNELS_JUDGE_SOURCE_UNIT_H_
#define KERNELS_JUDGE_SOURCE_UNIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/judge/source/files.h"
#include "kernels/judge/source/interface.h"

namespace convlab {

struct Unit {
  std::string path;                          // of the file to compile
  std::vector<std::string> include_folders;  // in the order of search
  std::vector<std::string> libraries;        // "cublas", by the includes
  // What the judge changed in the meaning of the text, as a warning.
  std::vector<std::string> notes;
  std::vector<KernelFile> files;  // the owner's, the main file first
};

// Writes the unit into `folder`, which is empty. The owner's files are copied,
// each behind a #line that names the original, so that the judge decides which
// header an include finds: the owner's own beside the file, or one of the
// course's, written here. InvalidArgument in one line if a file includes what
// cannot be had.
absl::StatusOr<Unit> WriteUnit(const KernelSource& source,
                               const std::string& folder);

}  // namespace convlab

#endif  // KERNELS_JUDGE_SOURCE_UNIT_H_
