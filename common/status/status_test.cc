#include "common/status/status.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/main.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return value / 2;
}

absl::StatusOr<int> Quarter(int value) {
  ASSIGN_OR_RETURN(const int half, Half(value));
  ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

absl::Status CheckQuarter(int value) {
  RETURN_IF_ERROR(Quarter(value).status());
  return absl::OkStatus();
}

TEST(Status, MacrosPropagateValuesAndErrors) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().message(), "odd");
  EXPECT_TRUE(CheckQuarter(4).ok());
  EXPECT_FALSE(CheckQuarter(5).ok());
}

TEST(Status, ExitStatusFollowsTheCode) {
  EXPECT_EQ(ExitStatus(absl::OkStatus()), 0);
  EXPECT_EQ(ExitStatus(absl::InternalError("")), 1);
  EXPECT_EQ(ExitStatus(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitStatus(absl::NotFoundError("")), 2);
  EXPECT_EQ(ExitStatus(absl::PermissionDeniedError("")), 2);
  EXPECT_EQ(ExitStatus(absl::UnavailableError("")), 3);
}

TEST(Status, AnnotateKeepsTheCode) {
  const absl::Status status =
      Annotate(absl::NotFoundError("no such file"), "weights");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "weights: no such file");
  EXPECT_TRUE(Annotate(absl::OkStatus(), "weights").ok());
}

TEST(Status, OneLineKeepsAllButControlCharacters) {
  EXPECT_EQ(OneLine("cannot read 'a\\b': É"), "cannot read 'a\\b': É");
  EXPECT_EQ(OneLine(absl::string_view("a\nb\r\t\x1b[2J\0\x7f", 11)),
            "a\\nb\\r\\t\\x1b[2J\\x00\\x7f");
}

TEST(Status, OneLineWritesControlsOfUnicodeOut) {
  // What turns the direction of writing makes a line look like another one.
  EXPECT_EQ(OneLine("a\u202eb\u2066c\u200fd\u061c"),
            "a\\u202eb\\u2066c\\u200fd\\u061c");
  // Terminals take C1 as escape sequences: U+009B is ESC [.
  EXPECT_EQ(OneLine("\xc2\x9b"
                    "2J"),
            "\\u009b2J");
  EXPECT_EQ(OneLine("\u2028\u2029\ufeff"), "\\u2028\\u2029\\ufeff");
  EXPECT_EQ(OneLine("\x9b"
                    "2J"),
            "\\x9b2J");
  // Forms that are too long, a half of a pair, an end within a character.
  EXPECT_EQ(OneLine("\xc0\x9b"), "\\xc0\\x9b");
  EXPECT_EQ(OneLine("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(OneLine("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(OneLine("\xe2\x80"), "\\xe2\\x80");
  EXPECT_EQ(OneLine("Größe ± 1 µs × 𝛼 …"), "Größe ± 1 µs × 𝛼 …");
}

TEST(Status, PrintableKeepsLines) {
  EXPECT_EQ(Printable("a\n\tb\r\x1b[2J\u202e\n"), "a\n\tb\\r\\x1b[2J\\u202e\n");
}

TEST(Status, ErrorLinesAreShort) {
  EXPECT_EQ(ErrorLine("profile", "a\nb"), "profile: a\\nb");
  const std::string path = absl::StrCat("/a/", std::string(1000, 'b'), "/c");
  EXPECT_EQ(
      ErrorLine("profile", absl::StrCat("cannot read ", path, ": no file")),
      absl::StrCat("profile: cannot read /a/", std::string(25, 'b'), "…",
                   std::string(25, 'b'), "/c: no file"));
  const std::string words =
      ErrorLine("p", absl::StrJoin(std::vector<int>(1000, 12), " "));
  EXPECT_LE(words.size(), kLongestErrorLine);
  EXPECT_EQ(words.substr(0, 9), "p: 12 12 ");
  // A character is not cut in two.
  for (int i = 0; i < 4; ++i) {
    std::string text(i, 'x');
    for (int j = 0; j < 200; ++j) text += "…";
    const std::string cut = ErrorLine("p", text);
    EXPECT_LE(cut.size(), kLongestErrorLine);
    EXPECT_EQ(OneLine(cut), cut);
  }
}

TEST(Status, FinishProgramTellsOfStandardOutputThatCannotBeWritten) {
  EXPECT_EQ(FinishProgram("p", absl::OkStatus()), 0);
  const auto print = [](const absl::Status& status) {
    // Buffered: only the end of the program finds that the device is full.
    if (std::freopen("/dev/full", "w", stdout) == nullptr) std::_Exit(99);
    std::fputs("text\n", stdout);
    std::_Exit(FinishProgram("p", status));
  };
  EXPECT_EXIT(print(absl::OkStatus()), ::testing::ExitedWithCode(1),
              "^p: cannot write standard output\n$");
  // The program's own error is told first.
  EXPECT_EXIT(print(absl::NotFoundError("no file")),
              ::testing::ExitedWithCode(2), "^p: no file\n$");
}

// As an allocation without memory does.
void Refuse() { std::get_new_handler()(); }

void RefuseForGood() noexcept { Refuse(); }

TEST(RunMain, WhatTheSystemRefusesIsOneLine) {
  EXPECT_EQ(RunMain("p", [] { return absl::OkStatus(); }), 0);
  const auto run = [](absl::FunctionRef<absl::Status()> program) {
    std::_Exit(RunMain("p", program));
  };
  EXPECT_EXIT(run([] { return absl::NotFoundError("no file"); }),
              ::testing::ExitedWithCode(2), "^p: no file\n$");
  EXPECT_EXIT(run([] {
                Refuse();
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(1),
              "^p: there is not enough memory\n$");
  EXPECT_EXIT(run([]() -> absl::Status {
                throw std::system_error(EAGAIN, std::generic_category());
              }),
              ::testing::ExitedWithCode(1), "^p: cannot start the threads: ");
  // Where no caller can be told.
  EXPECT_EXIT(run([] {
                RefuseForGood();
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(1),
              "^status_test: there is not enough memory\n$");
  EXPECT_EXIT(run([] {
                std::thread(Refuse).join();
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(1),
              "^status_test: there is not enough memory\n$");
  // Each of several threads, before the first has ended the program.
  EXPECT_EXIT(run([] {
                std::at_quick_exit([] { usleep(100'000); });
                std::vector<std::thread> threads;
                for (int i = 0; i < 4; ++i) threads.emplace_back(Refuse);
                for (std::thread& thread : threads) thread.join();
                return absl::OkStatus();
              }),
              ::testing::ExitedWithCode(1),
              "^status_test: there is not enough memory\n$");
  // What is no lack of memory stays a crash, which tells its type.
  EXPECT_EXIT(
      run([] {
        std::thread([] { throw std::runtime_error("a mistake"); }).join();
        return absl::OkStatus();
      }),
      ::testing::KilledBySignal(SIGABRT), "a mistake");
}

}  // namespace
}  // namespace convlab
