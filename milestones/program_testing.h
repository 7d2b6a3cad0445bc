// Helpers of the tests that run the milestones as a user does: they start the
// programs and read exit status, standard output and standard error.
#ifndef MILESTONES_PROGRAM_TESTING_H_
#define MILESTONES_PROGRAM_TESTING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace convlab {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// The thread sanitizer maps a file of its own when a program starts, which a
// limit on the size of files cuts off.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kFilesMayBeLimited = false;
#else
inline constexpr bool kFilesMayBeLimited = true;
#endif

struct Outcome {
  int exit_status;
  std::vector<std::string> out;  // lines
  std::vector<std::string> err;
};

// The path of a file of this repository that the test depends on.
std::string Runfile(absl::string_view path);

// The path of the repository's weights for the network.
std::string Model(absl::string_view network);

// The line of standard output with the share of correct answers.
std::string CorrectnessOf(const Outcome& outcome);

class ProgramsTest : public ::testing::Test {
 protected:
  void SetUp() override;

  // The path of a file in the test's folder, in which programs run.
  std::string Path(absl::string_view name) const;
  std::string Write(absl::string_view name, absl::string_view content) const;

  // Writes weights of sp19 that say that 91 of the first 100 images are
  // answered right, where 90 are.
  void WriteMiscounted(absl::string_view name) const;

  // Arguments are separated by blanks and contain none.
  Outcome Run(absl::string_view program, absl::string_view arguments) const;

  // Returns the outcome of a command that the shell runs in the test's folder;
  // its standard output is the file "out".
  Outcome Shell(absl::string_view command) const;

  // Expects exit status 2 and one line that names the program and the mistake.
  void ExpectRefused(absl::string_view program, absl::string_view arguments,
                     const std::vector<std::string>& words) const;

 private:
  std::string folder_;
};

}  // namespace convlab

#endif  // MILESTONES_PROGRAM_TESTING_H_
