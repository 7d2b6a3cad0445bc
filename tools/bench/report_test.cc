#include "tools/bench/report.h"

#include <string>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

const NamedLayer kLayer = {"fa19-L1", {100, 1, 70, 70, 12, 5}};

Measurement Example() {
  Measurement measurement;
  measurement.provider = "convlab";
  measurement.variant = "direct_tiled";
  measurement.error = 3e-7;
  measurement.worst = {2.5, 16, 0};
  measurement.samples_ns = {100000, 110000, 90000, 105000, 95000};
  measurement.bytes = kLayer.problem.min_bytes();
  return measurement;
}

class ReportTest : public ::testing::Test {
 protected:
  BenchOptions options_;
  BenchRecord record_;
  Report report_{options_, record_};
};

TEST_F(ReportTest, RowsHoldWhatIsDerivedFromTheSamples) {
  Ceilings ceilings;
  ceilings.copy_gbs = 1000;
  ceilings.fp32_tflops = 10;
  Measurement measurement = Example();
  measurement.sm_clock_mhz = 1980;
  report_.Add(kLayer, measurement, ceilings);
  ASSERT_EQ(record_.rows.size(), 1u);
  const BenchRow& row = record_.rows[0];
  EXPECT_EQ(row.layer, "fa19-L1");
  EXPECT_EQ(row.filters, 12);
  EXPECT_EQ(row.accuracy_class, "fp32");
  EXPECT_EQ(row.error, 3e-7);
  EXPECT_EQ(row.worst_c, 2.5);
  EXPECT_EQ(row.allowed_c, 16);
  EXPECT_DOUBLE_EQ(row.median_ms, 0.1);
  EXPECT_DOUBLE_EQ(row.iqr_ms, 0.01);
  EXPECT_DOUBLE_EQ(row.min_ms, 0.09);
  EXPECT_EQ(row.samples, 5);
  // 261,360,000 FLOP and 22.87 MB in 0.1 ms.
  EXPECT_NEAR(row.tflops, 2.6136, 1e-9);
  EXPECT_NEAR(row.gbs, kLayer.problem.min_bytes() / 1e5, 1e-9);
  EXPECT_NEAR(*row.floor_ms, 261.36e6 / 10e12 * 1e3, 1e-9);
  EXPECT_EQ(row.of_peak, std::nullopt);
  EXPECT_EQ(row.sm_clock_mhz, 1980);
  EXPECT_TRUE(report_.Outcome().ok());
}

TEST_F(ReportTest, OnTheCpuRowsHoldTheShareOfThePeak) {
  options_.backend = Backend::kCpu;
  Ceilings ceilings;
  ceilings.fp32_tflops = 10.4544;
  report_.Add(kLayer, Example(), ceilings);
  EXPECT_NEAR(*record_.rows[0].of_peak, 0.25, 1e-9);
  EXPECT_THAT(TableLine(record_, record_.rows[0], 9, /*wide=*/true),
              HasSubstr(" 25.0% "));
}

TEST_F(ReportTest, OnlyFailuresFailTheRun) {
  report_.Omit(kLayer, "convlab", "fft", AccuracyClass::kFp32, "too large",
               /*failed=*/false);
  EXPECT_TRUE(report_.Outcome().ok());
  report_.Omit(kLayer, "convlab", "direct_tiled", AccuracyClass::kFp32,
               "is\nwrong",
               /*failed=*/true);
  const absl::Status outcome = report_.Outcome();
  EXPECT_EQ(outcome.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(outcome.message(),
            "1 failed, the first: fa19-L1 convlab direct_tiled: is\\nwrong");
  ASSERT_EQ(record_.omissions.size(), 2u);
  EXPECT_EQ(record_.omissions[0].reason, "too large");
}

TEST_F(ReportTest, ArgumentsMeasureTheRowAgain) {
  const auto arguments = [&](const NamedLayer& layer, const char* provider,
                             const char* variant) {
    return Arguments(options_, layer, provider, variant, AccuracyClass::kTf32);
  };
  EXPECT_EQ(arguments(kLayer, "convlab", "tensor_tf32"),
            "--device gpu --layers fa19-L1 --batch 100 --variants tensor_tf32 "
            "--class tf32");
  EXPECT_EQ(arguments(kLayer, "cudnn", "NCHW FFT"),
            "--device gpu --layers fa19-L1 --batch 100 --variants cudnn "
            "--class tf32");
  options_.backend = Backend::kCpu;
  options_.rule.min_samples = 7;
  options_.rule.max_seconds = 0.5;
  options_.threads = 3;
  EXPECT_EQ(arguments({"2,1,9,9,3,3", {2, 1, 9, 9, 3, 3}}, "onednn", "nchw"),
            "--device cpu --layers 2,1,9,9,3,3 --variants onednn --class tf32 "
            "--samples 7 --seconds 0.5 --threads 3");
}

TEST_F(ReportTest, ArgumentsNameTheData) {
  options_.data = *FindDataFamily("filter-scales");
  EXPECT_THAT(Arguments(options_, kLayer, "convlab", "direct_tiled",
                        AccuracyClass::kFp32),
              EndsWith(" --class fp32 --data filter-scales"));
}

TEST_F(ReportTest, ArgumentsLeaveOutThePeersThatWereLeftOut) {
  options_.peers = false;
  EXPECT_EQ(Arguments(options_, kLayer, "convlab", "direct_tiled",
                      AccuracyClass::kFp32),
            "--device gpu --layers fa19-L1 --batch 100 --variants direct_tiled "
            "--class fp32 --nopeers");
}

TEST_F(ReportTest, NeighboursLeftBehindAreNamed) {
  Ceilings ceilings;
  ceilings.fill_gbs = 1000;
  ceilings.fp32_tflops = 1000;  // bound by memory
  const auto add = [&](NamedLayer layer, const char* variant, int64_t ns) {
    Measurement measurement = Example();
    measurement.variant = variant;
    measurement.samples_ns = {ns};
    measurement.bytes = layer.problem.min_bytes();
    report_.Add(layer, measurement, ceilings);
  };
  // At 1 TB/s the floor in ns is bytes / 1000.
  const auto floor = [](const Problem& problem) {
    return problem.min_bytes() / 1000;
  };
  const NamedLayer wider = {
      "100,1,71,71,12,5", {100, 1, 71, 71, 12, 5}, "fa19-L1"};
  const NamedLayer deeper = {
      "100,2,70,70,12,5", {100, 2, 70, 70, 12, 5}, "fa19-L1"};
  add(kLayer, "direct_tiled", 2 * floor(kLayer.problem));
  add(kLayer, "naive", 20 * floor(kLayer.problem));
  add(wider, "naive", 20 * floor(wider.problem));
  add(wider, "direct_tiled", 3 * floor(wider.problem));
  add(deeper, "direct_tiled", 8 * floor(deeper.problem));
  add({"100,1,9,9,1,3", {100, 1, 9, 9, 1, 3}, "fa18-L1"}, "direct_tiled", 1);
  const std::vector<Neighbour> neighbours = Neighbours(record_);
  ASSERT_EQ(neighbours.size(), 2u);
  EXPECT_EQ(neighbours[0].layer, &record_.rows[0]);
  EXPECT_EQ(neighbours[0].row, &record_.rows[3]);
  EXPECT_EQ(neighbours[0].change, "H+1 W+1");
  EXPECT_NEAR(neighbours[0].quotient, 2.0 / 3, 1e-3);
  EXPECT_EQ(neighbours[1].change, "C+1");
  EXPECT_NEAR(neighbours[1].quotient, 0.25, 1e-3);
  const std::string table = NeighboursTable(record_);
  EXPECT_THAT(table, HasSubstr("  50.0%     0.67\n"));
  EXPECT_THAT(table,
              HasSubstr("1 of 2 neighbours reach at least half the share of "
                        "their floor that the layer reaches; less: fa19-L1 C+1 "
                        "(0.25)\n"));
}

TEST_F(ReportTest, ANarrowTableFitsAHundredColumns) {
  Measurement measurement = Example();
  measurement.accuracy = AccuracyClass::kFp32Normwise;
  measurement.samples_ns = {9999000000};
  const NamedLayer layer = {"10000,1,28,28,50,5", {10000, 1, 28, 28, 50, 5}};
  report_.Add(layer, measurement, Ceilings());
  measurement.provider = "cudnn";
  measurement.variant = "NHWC engine 34 (k2=1 k5=0 k13=2)";
  report_.Add(layer, measurement, Ceilings());
  EXPECT_EQ(TableHead(Backend::kCpu, 18, /*wide=*/false).size(), 100);
  for (const BenchRow& row : record_.rows) {
    EXPECT_EQ(TableLine(record_, row, 18, /*wide=*/false).size(), 100);
  }
  EXPECT_THAT(TableLine(record_, record_.rows[1], 18, /*wide=*/false),
              HasSubstr(" cudnn NHWC engine"));
}

TEST_F(ReportTest, ColumnsStandUnderTheirHeads) {
  Measurement measurement = Example();
  report_.Add(kLayer, measurement, Ceilings());
  measurement.provider = "cudnn";
  measurement.variant = "NHWC engine 34 (k2=1 k5=0 k13=2)";
  measurement.samples_ns = {250000};
  report_.Add(kLayer, measurement, Ceilings());
  const std::string head = TableHead(Backend::kCuda, 9, /*wide=*/true);
  for (const BenchRow& row : record_.rows) {
    const std::string line = TableLine(record_, row, 9, /*wide=*/true);
    EXPECT_EQ(line.find("--device"), head.find("arguments")) << line;
    EXPECT_EQ(line.find(row.provider), head.find("provider")) << line;
    EXPECT_THAT(line, EndsWith(row.arguments));
  }
  EXPECT_THAT(TableLine(record_, record_.rows[0], 9, /*wide=*/true),
              HasSubstr(" 2.50 "));
  EXPECT_THAT(TableLine(record_, record_.rows[1], 9, /*wide=*/true),
              HasSubstr(" NHWC engine 34 (k2=1 ~ "));
  // The whole name is in the record.
  EXPECT_EQ(record_.rows[1].variant, measurement.variant);
}

TEST(Ceilings, ListsThoseThatWereMeasured) {
  Ceilings ceilings;
  ceilings.triad_gbs = 33.26;
  ceilings.fp32_tflops = 0.2164;
  EXPECT_EQ(CeilingsLine(ceilings),
            "ceilings: triad 33.3 GB/s, fp32 0.216 TFLOP/s");
}

TEST(Classes, AreNamesOrAll) {
  const auto classes = ParseClasses("fp16,fp32,fp16");
  ASSERT_TRUE(classes.ok()) << classes.status();
  EXPECT_THAT(*classes,
              ElementsAre(AccuracyClass::kFp16, AccuracyClass::kFp32));
  EXPECT_EQ(ParseClasses("all")->size(), 4u);
  for (const char* wrong : {"", "fp64", "bf16", "fp32,"}) {
    EXPECT_EQ(ParseClasses(wrong).status().code(),
              absl::StatusCode::kInvalidArgument)
        << wrong;
  }
}

TEST(Variants, AreNamesOrAll) {
  const std::vector<AccuracyClass> fp32 = {AccuracyClass::kFp32};
  const auto all = ParseVariants("all", Backend::kCpu, fp32, true);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_GE(all->variants.size(), 3u);
  EXPECT_TRUE(all->peers);
  const auto none =
      ParseVariants("all", Backend::kCpu, {AccuracyClass::kTf32}, false);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->variants.empty());
  const auto named =
      ParseVariants("im2col_eigen,naive", Backend::kCpu, fp32, false);
  ASSERT_TRUE(named.ok()) << named.status();
  ASSERT_EQ(named->variants.size(), 2u);
  EXPECT_STREQ(named->variants[0]->name, "im2col_eigen");
  EXPECT_FALSE(named->peers);
  // oneDNN is of class fp32.
  for (const auto& [backend, classes, peers] :
       {std::tuple(Backend::kCpu, "fp16", false),
        std::tuple(Backend::kCpu, "fp16,fp32", true),
        std::tuple(Backend::kCuda, "fp16", true)}) {
    EXPECT_EQ(
        ParseVariants("all", backend, *ParseClasses(classes), true)->peers,
        peers)
        << classes;
  }
  EXPECT_EQ(ParseVariants("onednn", Backend::kCpu, {AccuracyClass::kFp16}, true)
                .status()
                .message(),
            "'onednn' is of class fp32, which --class leaves out");
  BenchOptions options;
  options.backend = Backend::kCpu;
  const auto fastest = ParseVariants("naive,final", Backend::kCpu, fp32, false);
  ASSERT_TRUE(fastest.ok()) << fastest.status();
  EXPECT_TRUE(fastest->fastest);
  options.variants = fastest->variants;
  options.fastest = true;
  const auto both = VariantsFor(options, kLayer.problem);
  ASSERT_TRUE(both.ok()) << both.status();
  ASSERT_EQ(both->size(), 2u);
  // A class that is given twice is measured once.
  options.variants = *both;
  EXPECT_EQ(VariantsFor(options, kLayer.problem)->size(), 2u);
  const auto peer = ParseVariants("onednn", Backend::kCpu, fp32, false);
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_TRUE(peer->variants.empty());
  EXPECT_TRUE(peer->peers);
  EXPECT_THAT(
      std::string(
          ParseVariants("cudnn", Backend::kCpu, fp32, true).status().message()),
      HasSubstr("unknown variant 'cudnn' on the cpu"));
  EXPECT_THAT(std::string(ParseVariants("naive", Backend::kCpu,
                                        {AccuracyClass::kFp16}, true)
                              .status()
                              .message()),
              HasSubstr("is of class fp32, which --class leaves out"));
}

}  // namespace
}  // namespace convlab
