#include "milestones/program_testing.h"

#include <stdlib.h>
#include <sys/wait.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/files/files.h"
#include "gmock/gmock.h"

namespace convlab {

using ::testing::HasSubstr;
using ::testing::SizeIs;

namespace {

std::vector<std::string> Lines(const std::string& path) {
  std::vector<std::string> lines = absl::StrSplit(*ReadFile(path), '\n');
  lines.pop_back();  // the text after the last newline
  return lines;
}

}  // namespace

std::string Runfile(absl::string_view path) {
  return absl::StrCat(getenv("TEST_SRCDIR"), "/convlab/", path);
}

std::string Model(absl::string_view network) {
  return Runfile(
      absl::StrCat("common/weights/models/", network, ".safetensors"));
}

std::string CorrectnessOf(const Outcome& outcome) {
  for (const std::string& line : outcome.out) {
    if (absl::StartsWith(line, "Correctness: ")) return line;
  }
  return "none in:\n" + absl::StrJoin(outcome.out, "\n");
}

void ProgramsTest::SetUp() {
  std::string pattern = ::testing::TempDir() + "/programs.XXXXXX";
  folder_ = mkdtemp(pattern.data());
}

std::string ProgramsTest::Path(absl::string_view name) const {
  return absl::StrCat(folder_, "/", name);
}

std::string ProgramsTest::Write(absl::string_view name,
                                absl::string_view content) const {
  EXPECT_TRUE(WriteFileAtomically(Path(name), content).ok());
  return Path(name);
}

void ProgramsTest::WriteMiscounted(absl::string_view name) const {
  std::string weights = *ReadFile(Model("sp19"));
  const std::string stated = "\"correct_100\":\"90\"";
  const size_t place = weights.find(stated);
  ASSERT_NE(place, std::string::npos);
  weights[place + stated.size() - 2] = '1';
  Write(name, weights);
}

Outcome ProgramsTest::Run(absl::string_view program,
                          absl::string_view arguments) const {
  return Shell(
      absl::StrCat(Runfile("milestones/"), program, " ", arguments, " >out"));
}

Outcome ProgramsTest::Shell(absl::string_view command) const {
  Write("out", "");
  const int status = system(
      absl::StrCat("cd ", folder_, " && (", command, ") 2>err </dev/null")
          .c_str());
  return {WEXITSTATUS(status), Lines(Path("out")), Lines(Path("err"))};
}

void ProgramsTest::ExpectRefused(absl::string_view program,
                                 absl::string_view arguments,
                                 const std::vector<std::string>& words) const {
  SCOPED_TRACE(absl::StrCat(program, " ", arguments));
  const Outcome outcome = Run(program, arguments);
  EXPECT_EQ(outcome.exit_status, 2);
  ASSERT_THAT(outcome.err, SizeIs(1)) << absl::StrJoin(outcome.err, "\n");
  EXPECT_EQ(outcome.err[0].substr(0, program.size() + 2),
            absl::StrCat(program, ": "));
  for (const std::string& word : words) {
    EXPECT_THAT(outcome.err[0], HasSubstr(word));
  }
}

}  // namespace convlab
