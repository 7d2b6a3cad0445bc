#include "common/status/status.h"

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

}  // namespace
}  // namespace convlab
