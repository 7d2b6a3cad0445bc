// Text files that the program itself holds: on a GPU node there is no checkout.
// embed.bzl writes the functions' definitions.
#ifndef KERNELS_JUDGE_SOURCE_EMBEDDED_FILES_H_
#define KERNELS_JUDGE_SOURCE_EMBEDDED_FILES_H_

#include <vector>

namespace convlab {

struct EmbeddedFile {
  const char* name;  // "mxnet/base.h"
  const char* content;
};

// The headers of shims/, and abi.h.
const std::vector<EmbeddedFile>& Shims();

// The files of testdata/; only for tests.
const std::vector<EmbeddedFile>& TestFiles();

}  // namespace convlab

#endif  // KERNELS_JUDGE_SOURCE_EMBEDDED_FILES_H_
