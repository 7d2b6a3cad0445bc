// The revision and the mode of this build.
#ifndef COMMON_RECORD_BUILD_INFO_H_
#define COMMON_RECORD_BUILD_INFO_H_

namespace convlab {

// Abbreviated commit, "-modified" appended for a changed work tree, or
// "unknown" outside a git checkout.
extern const char kGitRevision[];

// Bazel's compilation mode: "opt", "dbg" or "fastbuild".
extern const char kBuildMode[];

}  // namespace convlab

#endif  // COMMON_RECORD_BUILD_INFO_H_
