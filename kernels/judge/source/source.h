// Reads the C++ text of contributed files as far as the judge must understand
// it: which functions a file defines or declares, and what it includes. It is
// no compiler; what it cannot read it does not find.
#ifndef KERNELS_JUDGE_SOURCE_SOURCE_H_
#define KERNELS_JUDGE_SOURCE_SOURCE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace convlab {

// The text with comments, and what stands between the quotes of literals,
// replaced by spaces. Length and line ends stay, so that offsets are the same.
// What `#if 0` excludes counts as a comment.
std::string WithoutComments(absl::string_view text);

// The line, from 1, in which the offset lies.
int LineOf(absl::string_view text, size_t offset);

struct Include {
  std::string name;     // as it was written, between the quotes or brackets
  bool quoted = false;  // "name", not <name>
  int line = 0;
};

std::vector<Include> Includes(absl::string_view text);

struct Parameter {
  std::string text;  // without its default
  std::string name;  // empty if it has none
  bool pointer = false;
  // Without its name and without what the type of a function ignores: "const
  // float*", "int".
  std::string type;
};

// A function's definition or declaration.
struct Function {
  std::string name;
  std::string scope;               // "GPUInterface" of GPUInterface::f
  std::string before;              // what stands before: "__host__ void"
  std::string template_arguments;  // "gpu,float" of f<gpu, float>
  std::vector<Parameter> parameters;
  bool definition = false;
  int line = 0;
};

struct SourceText {
  std::vector<Function> functions;
  std::vector<std::string> classes;  // the names of those that are defined
  bool launches = false;             // has a kernel, or launches one

  bool HasClass(absl::string_view name) const;
};

SourceText ReadSource(absl::string_view text);

}  // namespace convlab

#endif  // KERNELS_JUDGE_SOURCE_SOURCE_H_
