#include "common/record/seal.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_replace.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kKey[] = "0123456789abcdef";

class SealTest : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv(kSealKeyVariable); }

  // The file that a program writes, with the key in the environment.
  std::string Written(const std::string& key) {
    const std::string folder = ::testing::TempDir();
    if (!key.empty()) {
      EXPECT_TRUE(WriteFileAtomically(folder + "/key", key + "\n").ok());
      setenv(kSealKeyVariable, (folder + "/key").c_str(), 1);
    }
    RunRecord record;
    record.network = "fa19";
    record.size = 100;
    record.correct = 90;
    record.inference_ns = {21, 22};
    record.ladder.resize(1);
    record.ladder[0].relative_error = 1.25e-7;
    record.seal = Seal{"sha256", "", "of an earlier file"};
    EXPECT_TRUE(WriteRunRecord(folder + "/record.json", record).ok());
    unsetenv(kSealKeyVariable);
    return *ReadFile(folder + "/record.json");
  }
  SealState Check(const std::string& json, const std::string& key = "") {
    const auto state = CheckSeal(json, key);
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(SealState::kUnsealed);
  }
};

TEST_F(SealTest, EveryEditIsSeen) {
  const std::string json = Written("");
  EXPECT_EQ(Check(json), SealState::kIntact);
  EXPECT_EQ(ParseRunRecord(json)->seal->method, "sha256");
  EXPECT_EQ(Check(absl::StrReplaceAll(json, {{" 22\n", " 23\n"}})),
            SealState::kEdited);
  EXPECT_EQ(Check(absl::StrReplaceAll(json, {{"fa19", "fa20"}})),
            SealState::kEdited);
  EXPECT_EQ(
      Check(absl::StrReplaceAll(json, {{"\"size\"", "\"more\":1,\"size\""}})),
      SealState::kEdited);
  EXPECT_EQ(Check(absl::StrReplaceAll(json, {{"\"sha256\"", "\"md5\""}})),
            SealState::kEdited);
}

TEST_F(SealTest, LayoutDoesNotCount) {
  const std::string json = Written("");
  EXPECT_EQ(Check(absl::StrReplaceAll(json, {{"\n", "\r\n  "}})),
            SealState::kIntact);
}

TEST_F(SealTest, OlderRecordsHaveNone) {
  EXPECT_EQ(Check(ToJson(RunRecord())), SealState::kUnsealed);
  EXPECT_FALSE(CheckSeal("[1]", "").ok());
  EXPECT_FALSE(CheckSeal("{", "").ok());
}

TEST_F(SealTest, OnlyItsKeyOpensIt) {
  const std::string json = Written(kKey);
  EXPECT_EQ(Check(json, kKey), SealState::kIntact);
  EXPECT_EQ(Check(json), SealState::kOtherKey);
  EXPECT_EQ(Check(json, "another key, long enough"), SealState::kOtherKey);
  EXPECT_EQ(Check(Written(""), kKey), SealState::kOtherKey);
  const std::string edited = absl::StrReplaceAll(json, {{" 22\n", " 23\n"}});
  EXPECT_EQ(Check(edited, kKey), SealState::kEdited);
  // A new digest without the key does not help.
  auto forged = ParseRunRecord(edited);
  forged->seal->digest = MakeSeal(edited, "")->digest;
  EXPECT_EQ(Check(ToJson(*forged), kKey), SealState::kEdited);
  forged->seal = *MakeSeal(edited, "");
  EXPECT_EQ(Check(ToJson(*forged), kKey), SealState::kOtherKey);
}

TEST_F(SealTest, KeysComeFromFiles) {
  EXPECT_EQ(*ReadSealKey(""), "");
  const std::string file = ::testing::TempDir() + "/short";
  ASSERT_TRUE(WriteFileAtomically(file, "secret\n").ok());
  EXPECT_THAT(std::string(ReadSealKey(file).status().message()),
              AllOf(HasSubstr("/short: a key of 6 bytes"),
                    HasSubstr("expected at least 16")));
  setenv(kSealKeyVariable, "/nowhere", 1);
  EXPECT_EQ(
      WriteRunRecord(::testing::TempDir() + "/r.json", RunRecord()).code(),
      absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace convlab
