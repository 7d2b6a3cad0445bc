#include "reports/records/records.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/record/bench_record.h"
#include "common/record/network_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/records/test_records.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RecordsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(
        ::testing::TempDir(), "/",
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_ + "/deeper");
  }
  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/" + name, content).ok());
  }
  std::string Error() {
    return std::string(ReadRecords(folder_, "").status().message());
  }

  std::string folder_;
};

TEST_F(RecordsTest, FindsEverythingAtAnyDepth) {
  Write("b.json", ToJson(TestRecord("m3", "gpu", 100, "naive")));
  Write("deeper/a.json", ToJson(TestRecord("m2", "cpu", 100, "naive")));
  Write("deeper/m.trace.json", R"({"traceEvents":[]})");
  Write("deeper/naive.csv",
        "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\","
        "\"gpu__time_duration.sum\"\n"
        "\"\",\"\",\"\",\"\",\"ns\"\n"
        "\"0\",\"K\",\"(1, 1, 1)\",\"(1, 1, 1)\",\"5.5\"\n");
  Write("notes.txt", "not for us");
  Write("bench-fp32.json", ToJson(BenchRecord()));
  Write("network.json", ToJson(NetworkRecord()));
  Write("other.csv", "a,b\n1,2\n");
  const auto records = ReadRecords(folder_, "");
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->runs.size(), 2);
  EXPECT_EQ(records->runs[0].path, folder_ + "/b.json");
  EXPECT_EQ(records->runs[1].record.milestone, "m2");
  EXPECT_EQ(records->traces.count(folder_ + "/deeper/m.trace.json"), 1);
  ASSERT_EQ(records->counters.count("naive"), 1);
  EXPECT_EQ(records->counters.size(), 1);
}

TEST_F(RecordsTest, OneNetworkOfSeveral) {
  RunRecord other = TestRecord("m3", "gpu", 100, "naive");
  other.network = "mine";
  Write("a.json", ToJson(other));
  Write("b.json", ToJson(TestRecord("m3", "gpu", 100, "naive")));
  EXPECT_THAT(
      std::string(CheckSameMachine(*ReadRecords(folder_, "")).message()),
      AllOf(HasSubstr("a.json is of mine"), HasSubstr("b.json of fa19"),
            HasSubstr("--network")));
  const auto records = ReadRecords(folder_, "mine");
  ASSERT_TRUE(records.ok());
  ASSERT_EQ(records->runs.size(), 1);
  EXPECT_TRUE(CheckSameMachine(*records).ok());
  EXPECT_THAT(std::string(ReadRecords(folder_, "fa20").status().message()),
              HasSubstr("no run record of fa20"));
}

TEST_F(RecordsTest, CountersAreOfTheirNetworkAlone) {
  constexpr char kCounters[] =
      "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\","
      "\"gpu__time_duration.sum\"\n"
      "\"\",\"\",\"\",\"\",\"ns\"\n"
      "\"0\",\"K\",\"(1, 1, 1)\",\"(1, 1, 1)\",\"5.5\"\n";
  const auto variants = [&](const char* network) {
    std::vector<std::string> names;
    const auto records = ReadRecords(folder_, network);
    EXPECT_TRUE(records.ok()) << records.status();
    for (const auto& [name, profile] : records->counters) names.push_back(name);
    return names;
  };
  for (const char* folder : {"ncu", "ncu-mine", "ncu-fa19"}) {
    std::filesystem::create_directories(folder_ + "/" + folder);
  }
  Write("a.json", ToJson(TestRecord("m3", "gpu", 100, "naive")));
  Write("ncu/of_some.csv", kCounters);
  Write("ncu-mine/of_mine.csv", kCounters);
  Write("ncu-fa19/of_fa19.csv", kCounters);
  EXPECT_THAT(variants(""), ElementsAre("of_fa19", "of_some"));
  RunRecord other = TestRecord("m3", "gpu", 100, "naive");
  other.network = "mine";
  Write("b.json", ToJson(other));
  EXPECT_THAT(variants("fa19"), ElementsAre("of_fa19"));
  EXPECT_THAT(variants("mine"), ElementsAre("of_mine"));
  std::filesystem::create_directories(folder_ + "/deeper/ncu-fa19");
  Write("deeper/ncu-fa19/of_fa19.csv", kCounters);
  EXPECT_THAT(std::string(ReadRecords(folder_, "fa19").status().message()),
              AllOf(HasSubstr("/deeper/ncu-fa19/of_fa19.csv and "),
                    HasSubstr("same variant")));
}

TEST_F(RecordsTest, MixedDevicesAreNamed) {
  Records records = CompleteRecords();
  EXPECT_TRUE(CheckSameMachine(records).ok());
  records.runs[4].record.gpu.name = "Tesla T4";
  EXPECT_THAT(std::string(CheckSameMachine(records).message()),
              AllOf(HasSubstr("one GPU"), HasSubstr("NVIDIA H200"),
                    HasSubstr("runs/4.json of Tesla T4")));
  records = CompleteRecords();
  records.runs[3].record.host.cores = 2;
  EXPECT_THAT(std::string(CheckSameMachine(records).message()),
              HasSubstr("one CPU"));
}

TEST_F(RecordsTest, RunsOfKernelsThatFailedAreKeptApart) {
  RunRecord failed = Contributed(TestRecord("m3", "gpu", 100, "x"), "mine");
  failed.convolutions.clear();
  VerificationRecord& found = *failed.variants["mine"].verification;
  found.outcome = "crashed";
  found.reason = {"in convolution"};
  Write("a.json", ToJson(failed));
  const char* reason = "because the judge calls 'mine' crashed: in convolution";
  EXPECT_THAT(Error(), HasSubstr(reason));
  ReadOptions options;
  options.keep_failed = true;
  EXPECT_THAT(ReadRecords(folder_, options).status().message(),
              HasSubstr(reason));
  Write("b.json", ToJson(TestRecord("m3", "gpu", 100, "naive")));
  const auto records = ReadRecords(folder_, options);
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_EQ(records->runs.size(), 1u);
  ASSERT_EQ(records->failed.size(), 1u);
  EXPECT_EQ(RefusedKernel(records->failed[0].record)->first, "mine");
}

TEST_F(RecordsTest, BadInputIsNamed) {
  EXPECT_THAT(Error(), HasSubstr("holds no run record"));
  Write("a.json", "{\"schema\": \"convlab.run/9\"}");
  EXPECT_THAT(Error(), AllOf(HasSubstr("/a.json: "),
                             HasSubstr("unknown schema \"convlab.run/9\"")));
  const std::string whole = ToJson(TestRecord("m3", "gpu", 100, "naive"));
  Write("a.json", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(Error(), AllOf(HasSubstr("/a.json: "),
                             HasSubstr("not valid JSON at byte")));
  Write("a.json", R"({"schema": "convlab.run/1"})");
  EXPECT_THAT(Error(), HasSubstr("/a.json: the record lacks convolutions"));
  RunRecord nothing = TestRecord("m3", "gpu", 100, "naive");
  nothing.network = "mine";
  nothing.size = nothing.correct = 0;
  Write("a.json", ToJson(nothing));
  EXPECT_THAT(Error(), HasSubstr("record.size is 0"));
  EXPECT_EQ(ReadRecords(folder_ + "/none", "").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(RecordsTest, BrokenFilesAreKeptIfAsked) {
  ReadOptions options;
  options.keep_broken = true;
  EXPECT_THAT(std::string(ReadRecords(folder_, options).status().message()),
              HasSubstr("holds no run record"));
  Write("a.json", "{");
  Write("deeper/b.json", ToJson(TestRecord("m3", "gpu", 100, "naive")));
  ASSERT_TRUE(
      WriteRunRecord(folder_ + "/c.json", TestRecord("m3", "gpu", 100, "naive"))
          .ok());
  const auto records = ReadRecords(folder_, options);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->runs.size(), 2);
  EXPECT_EQ(records->runs[0].seal, SealState::kIntact);
  EXPECT_EQ(records->runs[1].seal, SealState::kUnsealed);
  ASSERT_EQ(records->broken.size(), 1);
  EXPECT_EQ(records->broken[0].path, folder_ + "/a.json");
  EXPECT_EQ(records->broken[0].reason,
            "not a run record: not valid JSON at byte 2");
}

TEST_F(RecordsTest, FoldersOfSeveralPeople) {
  std::filesystem::create_directories(folder_ + "/other/even");
  EXPECT_THAT(FoldersWithRecords(folder_), ElementsAre());
  const std::string record = ToJson(TestRecord("m3", "gpu", 100, "naive"));
  Write("deeper/a.json", record);
  Write("other/even/b.json", record);
  Write("notes.json", "{}");
  EXPECT_THAT(FoldersWithRecords(folder_), ElementsAre("deeper", "other"));
  Write("c.json", record);
  EXPECT_THAT(FoldersWithRecords(folder_), ElementsAre());
}

TEST(Find, NewestOfTheLargest) {
  const Records records = CompleteRecords();
  EXPECT_EQ(Find(records, {"m3", "gpu"})->size, 10000);
  EXPECT_EQ(Find(records, {"m3", "gpu", 100})->size, 100);
  EXPECT_EQ(Find(records, {"m3", "cpu"}), nullptr);
  EXPECT_TRUE(
      Find(records, {"m3", "gpu", std::nullopt, true})->profile.has_value());
  std::vector<int64_t> sizes;
  Wanted ladder = {"m4", ""};
  // A run of variants has none for each convolution, whatever its milestone.
  EXPECT_EQ(Find(records, ladder), nullptr);
  ladder.ladder = true;
  for (const RunRecord* record : FindAll(records, ladder)) {
    sizes.push_back(record->size);
  }
  EXPECT_THAT(sizes, ElementsAre(100, 1000, 10000));
}

}  // namespace
}  // namespace convlab
