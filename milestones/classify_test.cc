// Tests classify as a user runs it.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/dataset/idx.h"
#include "common/dataset/test_files.h"
#include "common/files/files.h"
#include "common/network/network.h"
#include "common/onnx/test_models.h"
#include "common/weights/weights.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device.h"
#include "milestones/classify_testing.h"
#include "milestones/program_testing.h"

namespace convlab {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(ClassifyTest, FolderFileAndStreamGiveTheSame) {
  WriteImages(300);
  const Outcome folder = Run("classify", "300 --out=folder.idx");
  EXPECT_EQ(folder.exit_status, 0) << absl::StrJoin(folder.err, "\n");
  EXPECT_THAT(folder.err[0], HasSubstr("classify: running on the "));
  EXPECT_THAT(folder.out, Contains(HasSubstr(" of 300 correct, ")));
  const auto labels = ReadIdxLabels(Path("folder.idx"));
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_THAT(*labels, SizeIs(300));

  const Outcome file =
      Run("classify", "fa19 images.idx --out=file.idx --labels=labels.idx");
  EXPECT_EQ(file.out, folder.out);
  Write("images.gz", Gzip(images_));
  const std::string program = Runfile(kClassify);
  const Outcome stream = Shell(
      absl::StrCat("cat images.gz | ", program, " - --out=stream.idx >out"));
  EXPECT_EQ(stream.exit_status, 0) << absl::StrJoin(stream.err, "\n");
  EXPECT_THAT(stream.out, Contains("300 images"));
  for (const char* name : {"file.idx", "stream.idx"}) {
    EXPECT_EQ(*ReadFile(Path(name)), *ReadFile(Path("folder.idx"))) << name;
  }
}

TEST_F(ClassifyTest, AnUnexpectedNumberOfCorrectLabelsIsTold) {
  WriteMiscounted("mine.safetensors");
  const std::string line =
      absl::StrCat(Runfile(kClassify), " sp19 100 --device=cpu ");
  constexpr char kMine[] = "--weights=mine.safetensors";
  constexpr char kSaid[] =
      "classify: 90 correct answers, where the weight file says 91";
  for (const auto& [command, status] :
       {std::pair(absl::StrCat("unset CI; ", line, kMine), 0),
        std::pair(absl::StrCat("unset CI; ", line, kMine, " --strict"), 1),
        std::pair(absl::StrCat("CI=1 ", line, kMine), 1),
        std::pair(absl::StrCat("CI=1 ", line, kMine, " --nostrict"), 0)}) {
    const Outcome outcome = Shell(command);
    EXPECT_EQ(outcome.exit_status, status) << command;
    EXPECT_EQ(outcome.err.back(), kSaid) << command;
  }
  EXPECT_EQ(Shell(absl::StrCat(line, "--strict")).exit_status, 0);
  // Nobody states how many of other images are right.
  WriteImages(100);
  EXPECT_EQ(Run("classify", absl::StrCat("sp19 images.idx --labels=labels.idx "
                                         "--strict ",
                                         kMine))
                .exit_status,
            0);
}

TEST_F(ClassifyTest, AllFormatsHoldTheSame) {
  WriteImages(20);
  for (const char* format : {"idx", "csv", "npy"}) {
    EXPECT_EQ(Run("classify", absl::StrCat("sp19 images.idx --out=l.", format))
                  .exit_status,
              0);
    EXPECT_EQ(Run("classify",
                  absl::StrCat("sp19 images.idx --logits --out=v.", format))
                  .exit_status,
              0);
  }
  const std::string idx = *ReadFile(Path("l.idx"));
  const std::string labels = idx.substr(8);
  EXPECT_EQ(idx, IdxFile({0x801, 20}, labels));
  std::string lines;
  for (const char label : labels) absl::StrAppend(&lines, int{label}, "\n");
  EXPECT_EQ(*ReadFile(Path("l.csv")), lines);
  const std::string npy = *ReadFile(Path("l.npy"));
  EXPECT_THAT(npy, HasSubstr("{'descr': '|u1', 'fortran_order': False, "
                             "'shape': (20,), }"));
  EXPECT_EQ(npy.substr(0, 8), std::string("\x93NUMPY\x01\0", 8));
  EXPECT_EQ(npy.size(), 128u + 20u);
  EXPECT_EQ(npy.substr(128), labels);

  const std::string values = *ReadFile(Path("v.npy"));
  EXPECT_THAT(values, HasSubstr("'<f4', 'fortran_order': False, "
                                "'shape': (20, 10), }"));
  ASSERT_EQ(values.size(), 128u + 20 * 10 * 4);
  const std::string big = *ReadFile(Path("v.idx"));
  EXPECT_EQ(big.substr(0, 12), IdxFile({0xD02, 20, 10}, ""));
  ASSERT_EQ(big.size(), 12u + 20 * 10 * 4);
  const std::vector<std::string> rows =
      absl::StrSplit(*ReadFile(Path("v.csv")), '\n');
  ASSERT_THAT(rows, SizeIs(21));
  for (int i = 0; i < 20; ++i) {
    const std::vector<std::string> row = absl::StrSplit(rows[i], ',');
    ASSERT_THAT(row, SizeIs(10));
    std::vector<float> logits(10);
    std::memcpy(logits.data(), &values[128 + i * 40], 40);
    for (int c = 0; c < 10; ++c) {
      float value = 0;
      ASSERT_TRUE(absl::SimpleAtof(row[c], &value));
      EXPECT_EQ(value, logits[c]);
      std::string bytes = big.substr(12 + i * 40 + c * 4, 4);
      std::reverse(bytes.begin(), bytes.end());
      EXPECT_EQ(bytes, values.substr(128 + i * 40 + c * 4, 4));
    }
    EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(),
              labels[i]);
  }
}

TEST_F(ClassifyTest, ThePlanIsPrintedAndDrawn) {
  const Outcome outcome = Run("classify", "100 --plan --plan_svg=plan.svg");
  EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
  EXPECT_THAT(outcome.out, Contains(HasSubstr("fused tanh, pool 2x2")));
  EXPECT_THAT(outcome.out,
              Contains(HasSubstr("folded conv 2, fc 1; fused bias, tanh")));
  const std::string picture = *ReadFile(Path("plan.svg"));
  EXPECT_THAT(picture, StartsWith("<svg "));
  EXPECT_THAT(picture, HasSubstr("folded conv 2, fc 1"));
  EXPECT_THAT(picture, ::testing::EndsWith("</svg>\n"));
}

TEST_F(ClassifyTest, AnOnnxFileIsANetwork) {
  WriteImages(300);
  const Network& network = **FindNetwork("lenet5");
  const auto weights = LoadWeights(Model("lenet5"), network);
  ASSERT_TRUE(weights.ok()) << weights.status();
  OnnxModel model = ModelOf(network, *weights);
  model.Add("Softmax", {"y11"}, "probabilities");
  Write("mine.onnx", model.File());
  ASSERT_EQ(
      Run("classify", "lenet5 images.idx --logits --out=table.npy").exit_status,
      0);
  const Outcome outcome =
      Run("classify", "mine.onnx images.idx --logits --out=onnx.npy");
  EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
  EXPECT_THAT(outcome.err, Contains(HasSubstr("('Softmax') is left out")));
  EXPECT_EQ(*ReadFile(Path("onnx.npy")), *ReadFile(Path("table.npy")));
  EXPECT_EQ(Run("classify", absl::StrCat("mine.onnx images.idx --weights=",
                                         Model("lenet5")))
                .exit_status,
            0);
  ExpectRefused("classify",
                absl::StrCat("mine.onnx images.idx --weights=", Model("sp19")),
                {"sp19.safetensors", "for network mine"});

  // Layer by layer too.
  const std::string found = CorrectnessOf(Run("final", "mine.onnx 100"));
  EXPECT_THAT(found, HasSubstr("Model: mine.onnx"));
  const std::string expected = CorrectnessOf(Run("final", "lenet5 100"));
  EXPECT_EQ(found.substr(0, found.find("Model")),
            expected.substr(0, expected.find("Model")));

  SetAttribute(model.Node("y4"), "pads", {2, 2, 2, 2});
  Write("padded.onnx", model.File());
  for (const char* program : {"classify", "final"}) {
    ExpectRefused(program, "padded.onnx",
                  {"padded.onnx: node 'node_y4' ('Conv'): attribute pads is "
                   "[2,2,2,2], expected [0,0,0,0]"});
    ExpectRefused(program, "nothing.onnx", {"nothing.onnx"});
  }
}

TEST_F(ClassifyTest, WrongArgumentsAreRefused) {
  WriteImages(3);
  ExpectRefused("classify", "fa91", {"neither the name of a network", "fa91"});
  ExpectRefused("classify", "images.idx other.idx", {"other.idx", "[INPUT]"});
  ExpectRefused("classify", "images.idx 4", {"size is 4", "1 to 3"});
  ExpectRefused("classify", "--out=labels.txt", {"labels.txt", ".npy"});
  ExpectRefused("classify", "--out=no/l.npy", {"cannot write", "no/l.npy"});
  ExpectRefused("classify", "--out=", {"--out is empty"});
  ExpectRefused("classify", "--logits", {"expected --out"});
  ExpectRefused("classify", "--device=tpu", {"tpu"});
  ExpectRefused("classify", "--cpu_target=mmx", {"mmx"});
  ExpectRefused("classify", "--nonsense", {"nonsense"});
  ExpectRefused("classify", "--plan_svg=no/p.svg", {"cannot write"});
  ExpectRefused("classify", "--workers=0", {"workers is 0"});
  ExpectRefused("classify", "--readers=2 --device=cpu",
                {"--readers is of GPUs", "on the CPU"});
  for (const char* const flags :
       {"--record=answers.idx", "--plan_svg=answers.idx",
        "--resume --record=answers.idx.run", "--labels=answers.idx",
        "--weights=answers.idx", "answers.idx --resume", "answers.*"}) {
    SCOPED_TRACE(flags);
    Write("answers.idx", images_);
    ExpectRefused("classify", absl::StrCat("--out=answers.idx ", flags),
                  {" are both ", "expected two files"});
    EXPECT_EQ(*ReadFile(Path("answers.idx")), images_);
  }
}

TEST_F(ClassifyTest, AMissingGpuIsSaid) {
  if (cuda::FindDevice().ok()) GTEST_SKIP() << "there is a GPU";
  ExpectFailure(Run("classify", "--device=gpu --out=answers.npy"), 3,
                {"no NVIDIA GPU can be used", "use --device cpu"});
}

// Each has its own order of additions, and the answers are the same; how far
// the closest logits are apart is not, in the third digit.
TEST_F(ClassifyTest, TheGpuGivesTheSameAnswers) {
  const auto gpu = cuda::FindDevice();
  if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
  for (const char* network : {"fa18", "sp19", "fa19", "fa20"}) {
    const Outcome on_gpu =
        Run("classify", absl::StrCat(network, " --device=gpu --out=gpu.idx"));
    EXPECT_EQ(on_gpu.exit_status, 0) << absl::StrJoin(on_gpu.err, "\n");
    EXPECT_THAT(on_gpu.err[0], HasSubstr("running on the GPU, "));
    const Outcome on_cpu =
        Run("classify", absl::StrCat(network, " --device=cpu --out=cpu.idx"));
    const auto without_distances = [](std::vector<std::string> lines) {
      for (std::string& line : lines) {
        line = line.substr(0, line.find(", logits "));
      }
      return lines;
    };
    EXPECT_EQ(without_distances(on_cpu.out), without_distances(on_gpu.out));
    EXPECT_EQ(*ReadFile(Path("gpu.idx")), *ReadFile(Path("cpu.idx")));
  }
}

TEST_F(ClassifyTest, BadInputLeavesNothingBehind) {
  WriteImages(30);
  const auto refused = [&](const std::string& arguments,
                           const std::vector<std::string>& words) {
    SCOPED_TRACE(arguments);
    ExpectFailure(Run("classify", arguments + " --out=answers.npy"), 2, words);
  };
  Write("short.idx", images_.substr(0, 16 + 20 * 784 + 300));
  refused("short.idx", {"short.idx", "300 of the 784 bytes of image 20"});
  Write("long.idx", images_ + "x");
  refused("long.idx", {"long.idx", "the file holds 23521"});
  Write("size.idx", IdxFile({0x803, 2, 20, 20}, std::string(800, 'x')));
  refused("size.idx", {"size.idx", "20x20, expected 28x28 or 70x70"});
  refused("labels.idx", {"labels.idx", "magic"});
  Write("two.idx", IdxFile({0x801, 2}, "\1\2"));
  refused("images.idx --labels=two.idx", {"two.idx has 2 labels", "30"});
  refused(absl::StrCat("images.idx --weights=", Model("sp19")),
          {"sp19.safetensors"});
  refused("images.idx --weights=images.idx", {"images.idx"});
  refused("nothing.idx", {"nothing.idx"});
  // Standard input is empty.
  refused("-", {"standard input", "ends after 0 bytes"});
}

TEST_F(ClassifyTest, WhatCannotBeWrittenIsAFailure) {
  WriteImages(300);
  const std::string program = Runfile(kClassify);
  if (kFilesMayBeLimited) {
    ExpectFailure(
        Shell(absl::StrCat("trap '' XFSZ; ulimit -f 4; ", program,
                           " images.idx --logits --out=answers.csv >out")),
        1, {"cannot write", "answers.csv"});
  }
  ExpectRefused("classify", "images.idx --out=/dev/full",
                {"--out is '/dev/full'"});
  const Outcome outcome =
      Shell(absl::StrCat(program, " images.idx >/dev/full"));
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_EQ(outcome.err.back(), "classify: cannot write standard output");
}

// Runs classify, and sends it the signal as soon as the condition holds; it
// would wait for the rest of the images otherwise.
std::string Interrupted(const char* signal, const char* condition) {
  return absl::StrCat("(head -c 100000 images.idx; until ", condition,
                      "; do :; done; kill -", signal,
                      " $(cat process); "
                      "while kill -0 $(cat process); do sleep 0.1; done) | "
                      "sh -c 'echo $$ >process; exec ",
                      Runfile(kClassify), " - --out=kept.idx >out'");
}

// The old answers stay, and no others are left.
TEST_F(ClassifyTest, AnInterruptLeavesNothingBehind) {
  WriteImages(300);  // more than is read at once
  Write("kept.idx", "old");
  const struct {
    const char* signal;
    int status;
  } kCases[] = {{"INT", 130}, {"TERM", 143}};
  for (const auto& [signal, status] : kCases) {
    SCOPED_TRACE(signal);
    const Outcome outcome =
        Shell(Interrupted(signal, "grep -q 'running on' err"));
    EXPECT_EQ(outcome.exit_status, status);
    EXPECT_THAT(outcome.err,
                Contains(::testing::AllOf(StartsWith("classify: interrupted"),
                                          HasSubstr("there is no new "),
                                          HasSubstr("kept.idx"))));
    EXPECT_EQ(*ReadFile(Path("kept.idx")), "old");
    EXPECT_THAT(Shell("ls | grep kept >out").out, ElementsAre("kept.idx"));
  }
}

// Also while the file is made, before there are answers for it.
TEST_F(ClassifyTest, AnInterruptAtTheBeginningLeavesNothingBehind) {
  WriteImages(300);
  Write("kept.idx", "old");
  constexpr int kTimes = 20;
  for (int i = 0; i < kTimes; ++i) {
    const Outcome outcome =
        Shell(Interrupted("TERM", "set -- kept.idx.*; [ -e \"$1\" ]"));
    EXPECT_EQ(outcome.exit_status, 143);
    EXPECT_EQ(*ReadFile(Path("kept.idx")), "old");
    ASSERT_THAT(Shell("ls | grep kept >out").out, ElementsAre("kept.idx"));
  }
}

// As under nohup. Where all are ignored, nothing waits for any.
TEST_F(ClassifyTest, AnIgnoredSignalStaysIgnored) {
  WriteImages(300);
  for (const char* ignored : {"HUP", "INT TERM HUP"}) {
    SCOPED_TRACE(ignored);
    const Outcome outcome = Shell(absl::StrCat(
        "(head -c 100000 images.idx; sleep 4; tail -c +100001 images.idx) | "
        "timeout --preserve-status -s HUP 2 sh -c \"trap '' ",
        ignored, "; exec ", Runfile(kClassify), " - --out=labels.csv\" >out"));
    EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
    EXPECT_THAT(outcome.out, Contains("300 images"));
  }
}

// The images take twice the memory that the program may use.
TEST_F(ClassifyTest, AStreamRunsInBoundedMemory) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  constexpr uint32_t kImages = 250000;
  Write("header", IdxFile({0x803, kImages, 28, 28}, ""));
  const Outcome outcome = Shell(absl::StrCat(
      "(cat header; head -c ", uint64_t{kImages} * 28 * 28, " /dev/zero) | ",
      Runfile(kClassify), " sp19 - --device=cpu --threads=2 --out=l.idx >out"));
  EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
  EXPECT_THAT(outcome.out, Contains("250000 images"));
  EXPECT_EQ(ReadFile(Path("l.idx"))->size(), 8u + kImages);
  const std::string& line = outcome.err.back();
  const size_t at = line.find("at most ");
  ASSERT_NE(at, std::string::npos) << line;
  EXPECT_LT(std::stoi(line.substr(at + 8)), 100) << line;
}

TEST_F(ClassifyTest, ATerminalShowsTheProgress) {
  const Outcome outcome = Shell(absl::StrCat(
      "script -qec '", Runfile(kClassify), " 100 >out' terminal >/dev/null"));
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(*ReadFile(Path("terminal")),
              HasSubstr("[##############################] 100 %"));
}

TEST_F(ClassifyTest, HelpGoesToStandardOutput) {
  const Outcome outcome = Run("classify", "--help");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.err, SizeIs(0));
  EXPECT_THAT(outcome.out[0], HasSubstr("compiled whole"));
}

}  // namespace
}  // namespace convlab
