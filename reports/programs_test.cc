// Tests the programs //reports:submission, compare and ranking as users run
// them.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/record/network_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

struct Outcome {
  int exit_status;
  std::string out, err;
};

class ReportsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(
        ::testing::TempDir(), "/",
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_ + "/in");
    const Records records = CompleteRecords();
    for (const NamedRecord& run : records.runs) {
      Write("in/" + run.path.substr(run.path.rfind('/') + 1),
            ToJson(run.record));
    }
    for (const auto& [name, trace] : records.traces) {
      Write("in/" + name.substr(name.rfind('/') + 1), trace);
    }
  }
  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/" + name, content).ok());
  }
  std::string Read(const std::string& name) {
    return ReadFile(folder_ + "/" + name).value_or("no file " + name);
  }
  // In the arguments, $in and $out are the test's folders.
  Outcome Run(const std::string& program, const std::string& arguments,
              const std::string& environment = "", const std::string& to = "") {
    const int status = std::system(
        absl::StrCat("in='", folder_, "/in' out='", folder_, "/out'; ",
                     environment, " reports/", program, " ", arguments, " >",
                     to.empty() ? folder_ + "/stdout" : to, " 2>", folder_,
                     "/stderr </dev/null")
            .c_str());
    return {WEXITSTATUS(status), Read("stdout"), Read("stderr")};
  }
  void ExpectRefused(const std::string& program, const std::string& arguments,
                     const std::string& words) {
    const Outcome run = Run(program, arguments);
    EXPECT_EQ(run.exit_status, 2) << arguments;
    EXPECT_THAT(run.err, MatchesRegex(program + ": [^\n]+\n")) << arguments;
    EXPECT_THAT(run.err, HasSubstr(words));
    EXPECT_FALSE(fs::exists(folder_ + "/out")) << arguments;
  }

  std::string folder_;
};

constexpr char kFlags[] = "--milestone final --records $in --out $out ";

TEST_F(ReportsTest, WritesEveryFormatAndChart) {
  const Outcome run = Run("submission", absl::StrCat(kFlags, "--team 'A <b>'"));
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(Read("out/submission.md"),
              AllOf(HasSubstr("A &lt;b\\>"), HasSubstr("# Final")));
  EXPECT_THAT(Read("out/submission.html"), StartsWith("<!DOCTYPE html>"));
  for (const char* chart : {"ladder", "all-rungs", "final-timeline"}) {
    EXPECT_THAT(Read(absl::StrCat("out/charts/", chart, ".svg")),
                HasSubstr("</svg>"));
  }
  if (fs::exists("/usr/bin/weasyprint")) {
    EXPECT_THAT(Read("out/submission.pdf"), StartsWith("%PDF-"));
  }
  // No temporary files are left.
  for (const auto& entry : fs::directory_iterator(folder_ + "/out")) {
    EXPECT_THAT(entry.path().filename().string(), Not(StartsWith(".")));
  }
}

TEST_F(ReportsTest, WithoutWeasyprintOneCommandFinishesIt) {
  fs::create_directories(folder_ + "/out");
  Write("out/submission.pdf", "of an earlier report");
  const Outcome run =
      Run("submission", absl::StrCat(kFlags, "--team \"O'Neill\""),
          "PATH=/nowhere");
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(
      run.err,
      HasSubstr(absl::StrCat(
          "without weasyprint here, the PDF is missing; where tools/setup.sh "
          "has run, this finishes the report: bazel run "
          "//reports:submission -- --milestone final --records ",
          folder_, "/in --out ", folder_, "/out --team 'O'\\''Neill'\n")));
  EXPECT_THAT(Run("submission", absl::StrCat(kFlags, "--team \"a'\\\\\x1b\""),
                  "PATH=/nowhere")
                  .err,
              EndsWith(" --team $'a\\'\\\\\\x1b'\n"));
  EXPECT_THAT(Read("out/submission.md"), HasSubstr("](charts/ladder.svg)"));
  EXPECT_FALSE(fs::exists(folder_ + "/out/submission.pdf"));
}

TEST_F(ReportsTest, BadUsageAndBadRecordsAreOneLine) {
  ExpectRefused("submission", "--records $in --out $out",
                "--milestone is missing");
  ExpectRefused("submission", "--milestone m1 --out $out",
                "--records is missing");
  ExpectRefused("submission", "--milestone m1 --records $in",
                "--out is missing");
  ExpectRefused("submission", absl::StrCat(kFlags, "more"), "'more'");
  ExpectRefused("submission", "--milestone m9 --records $in --out $out",
                "'m9'");
  ExpectRefused("submission", absl::StrCat(kFlags, "--optimizations x"), "'x'");
  ExpectRefused("submission", absl::StrCat(kFlags, "--base x"), "'x'");
  ExpectRefused("submission", absl::StrCat(kFlags, "--participants /none"),
                "/none");
  ExpectRefused("submission", "--milestone m1 --records $in/none --out $out",
                "in/none");
  ExpectRefused("submission", "--milestone m1 --records $in --out /proc/none",
                "/proc/none");
  ExpectRefused("submission", "--milestone m1 --records $in --out $in/0.json",
                "0.json");

  fs::create_directories(folder_ + "/in/empty");
  ExpectRefused("submission", "--milestone m1 --records $in/empty --out $out",
                "holds no run record");
  ExpectRefused("submission", "--milestone m1 --records /dev/null --out $out",
                "/dev/null");
  Write("in/x.json", "{\"schema\": \"convlab.run/2\"}");
  ExpectRefused("submission", kFlags, "x.json: unknown schema");
  const std::string whole = ToJson(TestRecord("m1", "gpu", 100, "cudnn"));
  Write("in/x.json", whole.substr(0, whole.size() - 20));
  ExpectRefused("submission", kFlags, "x.json: not a run record: not valid");
  RunRecord other = TestRecord("m1", "gpu", 100, "cudnn");
  other.network = "mine";
  Write("in/x.json", ToJson(other));
  ExpectRefused("submission", kFlags, "choose one with --network");
  EXPECT_EQ(
      Run("submission", absl::StrCat(kFlags, "--network fa19"), "PATH=/nowhere")
          .exit_status,
      0);
}

TEST_F(ReportsTest, NotesHaveATemplateThatIsNotOverwritten) {
  const std::string make = absl::StrCat(
      "--milestone final --records $in --notes_template $in/../notes.md");
  Outcome run = Run("submission", make);
  EXPECT_EQ(run.exit_status, 0) << run.err;
  const std::string notes = Read("notes.md");
  EXPECT_THAT(notes, HasSubstr("### Why should it help?"));
  ExpectRefused("submission", make, "is there already");
  Write("notes.md", notes + "\nThe end.\n");
  run = Run("submission", absl::StrCat(kFlags, "--notes $in/../notes.md"),
            "PATH=/nowhere");
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(Read("out/submission.md"), HasSubstr("\nThe end.\n"));
  fs::remove_all(folder_ + "/out");
  Write("notes.md", "## No such section\nx\n");
  ExpectRefused("submission", absl::StrCat(kFlags, "--notes $in/../notes.md"),
                "notes.md: line 1: there is no section");
  ExpectRefused("submission", absl::StrCat(kFlags, "--notes /none"), "/none");
  const std::string check = "--check --notes $in/../notes.md ";
  run = Run("submission", check + "--milestone m4");
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_EQ(run.out, "");
  ExpectRefused("submission", check + "--milestone m9", "'m9'");
  ExpectRefused("submission", check + "--milestone m4 --prose maybe",
                "--prose is 'maybe'");
  Write("notes.md", "# Ours\n\nx\n");
  ExpectRefused("submission", check + "--milestone m4",
                "notes.md: line 3: text before");
  ExpectRefused("submission", absl::StrCat(kFlags, "--prose maybe"),
                "--prose is 'maybe', expected yes or no");
}

TEST_F(ReportsTest, WhatKilledRunsLeftIsRemoved) {
  fs::create_directories(folder_ + "/out/.unfinished-abcdef/charts");
  fs::create_directories(folder_ + "/out/.unfinished-lively");
  Write("out/.unfinished-abcdef/charts/x.dat", "1");
  // That of a program that still runs is locked.
  const Outcome run = Run("submission", kFlags,
                          "PATH=$PATH:/usr/bin; exec 9<$out/.unfinished-lively;"
                          " flock 9; PATH=/nowhere");
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_FALSE(fs::exists(folder_ + "/out/.unfinished-abcdef"));
  EXPECT_TRUE(fs::exists(folder_ + "/out/.unfinished-lively"));
}

TEST_F(ReportsTest, AFullDiskIsTold) {
  const std::pair<std::string, std::string> commands[] = {
      {"submission", "--help"},
      {"submission", kFlags},
      {"compare", "--help"},
      {"compare", "$in $in"},
      {"ranking", "--help"}};
  for (const auto& [program, arguments] : commands) {
    const Outcome run =
        Run(program, arguments, "PATH=/nowhere", /*to=*/"/dev/full");
    EXPECT_EQ(run.exit_status, 1) << program << " " << arguments;
    EXPECT_THAT(run.err,
                EndsWith(program + ": cannot write standard output\n"));
  }
}

TEST_F(ReportsTest, AFolderInAFilesPlaceLeavesTheEarlierReport) {
  fs::create_directories(folder_ + "/out/submission.html");
  Write("out/submission.md", "of an earlier report");
  Write("out/submission.pdf", "of an earlier report");
  const Outcome run = Run("submission", kFlags, "PATH=/nowhere");
  EXPECT_EQ(run.exit_status, 2);
  EXPECT_THAT(run.err, MatchesRegex("submission: cannot write [^\n]+"
                                    "/out/submission.html: Is a directory\n"));
  EXPECT_EQ(Read("out/submission.md"), "of an earlier report");
  EXPECT_EQ(Read("out/submission.pdf"), "of an earlier report");
  EXPECT_FALSE(fs::exists(folder_ + "/out/charts"));
}

TEST_F(ReportsTest, TextFromRecordsIsTextInEveryFile) {
  constexpr char kEvil[] = "../<script>|`x`'\"\n$(id) \xF0\x9F\x99\x82";
  const std::string evil = kEvil + std::string(300, 'x');
  Records records = CompleteRecords();
  for (size_t i = 0; i < records.runs.size(); ++i) {
    RunRecord& record = records.runs[i].record;
    record.network = record.weights = record.host.cpu = evil;
    record.gpu.name = record.device == "gpu" ? "NVIDIA H200 " + evil : "";
    record.command.push_back(evil);
    record.output.push_back(evil);
    for (auto& [name, variant] : record.variants) {
      variant.summary = variant.reason = evil;
    }
    for (PeerRecord& peer : record.peers) peer.library = evil;
    if (record.profile) record.profile->gpu_activities.entries[0].name = evil;
    Write(absl::StrCat("in/", i, ".json"), ToJson(record));
  }
  const Outcome run = Run("submission", kFlags);
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(Read("out/submission.html"), Not(HasSubstr("<script>|")));
  EXPECT_THAT(Read("out/charts/ladder.svg"),
              AllOf(HasSubstr("</svg>"), Not(HasSubstr("<script"))));
}

TEST_F(ReportsTest, RankingTakesFoldersAsTheyAre) {
  fs::create_directories(folder_ + "/class/ada");
  fs::create_directories(folder_ + "/class/bob/more");
  RunRecord run_of_ada = Verified(TestRecord("m3", "gpu", 10000, "naive"));
  ASSERT_TRUE(WriteRunRecord(folder_ + "/class/ada/a.json", run_of_ada).ok());
  Write("class/ada/submission.html", "a report");
  Write("class/bob/more/b.json", Read("class/ada/a.json"));
  const std::string both = "$in/../class/ada $in/../class/bob ";
  // The weights of fa19 have other numbers than the test's records.
  Outcome run = Run("ranking", both + "--html $out");
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("9,000 correct answers, expected 9,193"));
  run = Run("ranking", both + "--correct 9000 --html $out");
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("|    1 | ada  |"),
                             HasSubstr("a copy of a run")));
  EXPECT_THAT(Read("out"), HasSubstr("href=\"class/ada/submission.html\""));
  fs::remove(folder_ + "/out");

  ExpectRefused(
      "ranking", "$in/../class",
      "its folders ada, bob do: if each is a participant's, give each; ");
  // Such a folder does not keep others from being ranked.
  run = Run("ranking", "$in/../class/ada $in/../class --correct 9000");
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("|    1 | ada  |"),
                             HasSubstr("holds no records itself")));
  Write("class/bob/more/b.json", "{\"schema\": \"convlab.run/1\", \"x");
  run = Run("ranking", both + "$in/../class/carol --correct 9000");
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("|    1 | ada  |"),
                    HasSubstr("`b.json` | not a run record: not valid JSON"),
                    HasSubstr("carol")));
  std::string edited = Read("class/ada/a.json");
  edited.replace(edited.find("\"correct\": 9000"), 15, "\"correct\": 9001");
  Write("class/ada/a.json", edited);
  run = Run("ranking", "$in/../class/ada --correct 9001");
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("edited: its seal does not fit its content"));
}

TEST_F(ReportsTest, ASealKeyIsAskedFor) {
  Write("key", "a key of the teacher's machine\n");
  fs::create_directories(folder_ + "/ada");
  const RunRecord record = Verified(TestRecord("m3", "gpu", 10000, "naive"));
  ASSERT_TRUE(WriteRunRecord(folder_ + "/ada/a.json", record).ok());
  const std::string flags = "$in/../ada --correct 9000 ";
  EXPECT_THAT(Run("ranking", flags).out, HasSubstr("|    1 | ada  |"));
  EXPECT_THAT(Run("ranking", flags + "--seal_key $in/../key").out,
              HasSubstr("not sealed with the key of --seal\\_key"));
  setenv("CONVLAB_SEAL_KEY", (folder_ + "/key").c_str(), 1);
  ASSERT_TRUE(WriteRunRecord(folder_ + "/ada/a.json", record).ok());
  unsetenv("CONVLAB_SEAL_KEY");
  EXPECT_THAT(Run("ranking", flags + "--seal_key $in/../key").out,
              HasSubstr("|    1 | ada  |"));
  EXPECT_THAT(Run("ranking", flags).out,
              HasSubstr("sealed with a key, which --seal\\_key names"));
}

TEST_F(ReportsTest, ExploreWritesOnePageOfAllRecords) {
  fs::create_directories(folder_ + "/in/ada");
  RunRecord evil = TestRecord("m3", "gpu", 1000, "</script><b>\u202e");
  Write("in/ada/x.json", ToJson(evil));
  Write("in/broken.json", "{\"schema\": \"convlab.run/1\", \"x");
  Write("in/ada/bench.json", *ReadFile("reports/testdata/bench-fp32.json"));
  RunRecord wrong = Verified(TestRecord("m3", "gpu", 100, "memo"));
  wrong.variants["memo"].verification->relative_error = 2.5e-7;
  wrong.count_error = "3 correct answers";
  Write("in/ada/wrong.json", ToJson(wrong));
  RunRecord hidden = Verified(TestRecord("m3", "gpu", 100, "elsewhere"));
  hidden.variants["elsewhere"].verification->op_time_counts = false;
  hidden.variants["elsewhere"].verification->op_time_note = "in the prolog";
  Write("in/ada/hidden.json", ToJson(hidden));
  NetworkRecord networks;
  networks.device = "gpu";
  networks.gpu.name = "NVIDIA H200";
  networks.peer = "cuDNN <9>";
  NetworkRow& row = networks.rows.emplace_back();
  row.network = "fa19";
  row.provider = "convlab";
  row.path = kHostPath;
  row.images = 100;
  row.samples = 20;
  row.least_us = row.p50_us = 40;
  row.p90_us = row.p99_us = 50;
  row.images_per_s = 2.5e6;
  Write("in/ada/network.json", ToJson(networks));
  const Outcome run = Run("explore", "$in --out $out");
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("broken.json left out: "));
  const std::string page = Read("out");
  EXPECT_LT(page.size(), 2'000'000);
  EXPECT_THAT(
      page,
      AllOf(HasSubstr("; 1 other could not be read."),
            HasSubstr("\"who\":\"ada\""),
            HasSubstr("\\u003c/script\\u003e\\u003cb\\u003e\\\\u202e"),
            Not(HasSubstr("</script><b>")), HasSubstr("\"ms\":[2.5,7.5]"),
            HasSubstr("\"wrong\":\"3 correct answers\""),
            HasSubstr("\"wrong\":\"in the prolog\""),
            HasSubstr("\"error\":2.5e-07"), Not(HasSubstr("src=")),
            HasSubstr("\"milestone\":\"bench\""),
            HasSubstr("\"variant\":\"tensor_split\""),
            HasSubstr("\"variant\":\"cuDNN 9.19.0\""),
            HasSubstr("\"peer\":\"cuDNN \\u003c9\\u003e\""),
            HasSubstr(
                "\"images\":100,\"provider\":\"convlab\",\"from\":\"host\""),
            HasSubstr("\"NVIDIA H200\":{\"memory\":4800.0")));
  fs::remove(folder_ + "/out");
  // Benchmarks alone are enough.
  EXPECT_EQ(Run("explore", "$in/ada/network.json --out $out").exit_status, 0);
  fs::remove(folder_ + "/out");
  ExpectRefused("explore", "", "0 folders are given");
  ExpectRefused("explore", "$in/none --out $out", "in/none");
  ExpectRefused("explore", "$in/broken.json --out $out", "broken.json");
}

TEST_F(ReportsTest, CompareAndRanking) {
  Outcome run = Run("compare", "$in/4.json $in/4.json");
  EXPECT_EQ(run.exit_status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("| 1.000 | within the spread |"));
  ExpectRefused("compare", "$in", "1 records or folders");
  ExpectRefused("compare", "$in/0.json $in/1.json", "different devices");
  ExpectRefused("compare", "$in/0.json $in/none", "none");
  ExpectRefused("ranking", "", "no folder");
  ExpectRefused("ranking", "$in --correct 10001", "--correct is 10001");
  ExpectRefused("ranking", "$in --device tpu", "--device is 'tpu'");
  ExpectRefused("ranking", "--rerun $in", "bazel run //tools:rerun -- ");
  ExpectRefused("ranking", "$in --network fa99", "fa99");
  ExpectRefused("ranking", "$in --size 7", "no run of fa19 with 7 images");
  ExpectRefused("ranking", "$in $in/../in/", "both be ranked as 'in'");
  for (const char* program : {"submission", "compare", "ranking", "explore"}) {
    run = Run(program, "--help");
    EXPECT_EQ(run.exit_status, 0);
    EXPECT_THAT(run.err, IsEmpty());
    EXPECT_THAT(run.out, StartsWith(absl::StrCat("Usage: bazel run //reports:",
                                                 program)));
    ExpectRefused(program, "--bogus", "unknown flag --bogus");
  }
}

}  // namespace
}  // namespace convlab
