// classify by several workers and ranks, and a run that is resumed.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/dataset/test_files.h"
#include "common/files/files.h"
#include "common/record/build_info.h"
#include "common/record/classify_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "milestones/classify_testing.h"

namespace convlab {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Pieces of 1,024 images: where they begin does not depend on the workers.
TEST_F(ClassifyTest, WorkersFilesAndAResumedRunGiveTheSame) {
  WriteImages(5000);
  const std::string one_flags = " --device=cpu --threads=2 --labels=labels.idx";
  const Outcome one =
      Run("classify", "images.idx --logits --out=one.npy" + one_flags);
  ASSERT_EQ(one.exit_status, 0) << absl::StrJoin(one.err, "\n");
  const std::string expected = *ReadFile(Path("one.npy"));
  const auto expect_same = [&](const Outcome& outcome, const char* file) {
    EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
    EXPECT_EQ(outcome.out, one.out);
    EXPECT_TRUE(*ReadFile(Path(file)) == expected) << file;
  };
  expect_same(Run("classify",
                  "images.idx --workers=3 --record=run.json "
                  "--logits --out=three.npy" +
                      one_flags),
              "three.npy");
  const auto record = ParseClassifyRecord(*ReadFile(Path("run.json")));
  ASSERT_TRUE(record.ok()) << record.status();
  ASSERT_THAT(record->shares, SizeIs(3));
  int64_t images = 0;
  for (const ClassifyShare& share : record->shares) images += share.images;
  EXPECT_EQ(images, 5000);
  EXPECT_EQ(record->images, 5000);

  // The second file is read forward, and so are all.
  for (const auto& [name, first, count] :
       {std::tuple("part-0.idx", 0, 1500), {"part-1.idx", 1500, 3500}}) {
    const std::string file =
        IdxFile({0x803, static_cast<uint32_t>(count), 28, 28},
                pixels_.substr(size_t{784} * first, size_t{784} * count));
    Write(name, first == 0 ? file : Gzip(file));
  }
  expect_same(Run("classify",
                  "--data=part-*.idx --workers=2 --logits "
                  "--out=parts.npy" +
                      one_flags),
              "parts.npy");

  if (!kFilesMayBeLimited) return;
  // The disk is full after two pieces of answers.
  const std::string resumed =
      " --data=part-*.idx --resume --logits --out=resumed.npy" + one_flags;
  const Outcome full = Shell(absl::StrCat(
      "trap '' XFSZ; ulimit -f 200; ", Runfile(kClassify), resumed, " >out"));
  EXPECT_EQ(full.exit_status, 1);
  EXPECT_THAT(full.err.back(), HasSubstr("cannot write"));
  EXPECT_THAT(full.err[full.err.size() - 2],
              HasSubstr("2048 of 5000 images are answered in "));
  const std::string so_far = *ReadFile(Path("resumed.npy"));
  EXPECT_THAT(so_far, HasSubstr("'shape': (2048, 10), }"));
  EXPECT_EQ(so_far.substr(128), expected.substr(128, 2048 * 40));
  const Outcome rest = Run("classify", resumed);
  expect_same(rest, "resumed.npy");
  EXPECT_THAT(rest.err, Contains(HasSubstr("behind image 2048 of 5000")));
  // All is done.
  expect_same(Run("classify", resumed), "resumed.npy");
  // Nothing else is gone on with, and nothing is changed.
  ExpectRefused("classify",
                "images.idx 4000 --resume --logits --out=resumed.npy",
                {"resumed.npy.run", "the images' digest was"});
  ExpectRefused("classify", "sp19" + resumed, {"the network was fa19"});
  const std::string state = *ReadFile(Path("resumed.npy.run"));
  Write("resumed.npy.run",
        absl::StrReplaceAll(state, {{"\"done\": 5000", "\"done\": 5001"}}));
  ExpectRefused("classify", resumed,
                {"resumed.npy.run: done is 5001, expected 0 to 5000"});
  EXPECT_TRUE(*ReadFile(Path("resumed.npy")) == expected);
  // Answers that are fewer than the state says stay as they are, too.
  Write("resumed.npy.run", state);
  const std::string half = expected.substr(0, expected.size() / 2);
  Write("resumed.npy", half);
  ExpectRefused(
      "classify", resumed,
      {absl::StrCat("resumed.npy has ", half.size(), " bytes, expected ")});
  EXPECT_TRUE(*ReadFile(Path("resumed.npy")) == half);
  // So do answers of which nothing says of what they are.
  ASSERT_EQ(std::remove(Path("resumed.npy.run").c_str()), 0);
  ExpectRefused(
      "classify", resumed,
      {"resumed.npy has answers already, but there is no ", "resumed.npy.run"});
  EXPECT_TRUE(*ReadFile(Path("resumed.npy")) == half);
}

// Four ranks on this machine, started by mpirun.
class ClassifyRanksTest : public ClassifyTest {
 protected:
  void SetUp() override {
    ClassifyTest::SetUp();
#if defined(__SANITIZE_ADDRESS__)
    // Open MPI leaves memory, also of libraries that it has closed and that
    // nobody can name. Our own is looked for where classify runs alone.
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
#endif
    if (Shell("command -v mpirun >out").exit_status != 0) {
      GTEST_SKIP() << "there is no mpirun (openmpi-bin)";
    }
    if (Ranks(2, "nothing.idx").exit_status == 3) {
      GTEST_SKIP() << "this program was built without Open MPI";
    }
    WriteImages(kImages);
    // Long enough for what happens in the middle.
    Shell("for i in 0 1 2; do ln images.idx part-$i.idx; done");
    const Outcome one = Run("classify", kFlags + " --out=one.npy");
    ASSERT_EQ(one.exit_status, 0) << absl::StrJoin(one.err, "\n");
    expected_out_ = one.out;
    expected_ = *ReadFile(Path("one.npy"));
  }

  static std::string Line(int ranks, const std::string& arguments) {
    return absl::StrCat(
        "-np ", ranks, " --oversubscribe --allow-run-as-root -- ",
        Runfile(kClassify), " ", arguments, " --threads=1 --device=cpu");
  }

  Outcome Ranks(int ranks, const std::string& arguments,
                const std::string& environment = "") {
    return Shell(absl::StrCat(environment, " timeout ", kSeconds, " ",
                              Runfile("tools/cluster/mpi"), " ",
                              Line(ranks, arguments), " >out"));
  }

  // Begins a run of four and ends rank 2 by the signal when there are answers.
  Outcome RanksWithout2(const char* signal, const std::string& arguments) {
    return Shell(absl::StrCat(
        "export CONVLAB_SILENCE=", kSilence, "; timeout ", kSeconds, " ",
        Runfile("tools/cluster/mpi"), " ", Line(4, arguments),
        " >out & run=$!; "
        "until [ $(stat -c %s answers.npy 2>/dev/null || echo 0) -gt 1000 ] || "
        "! kill -0 $run; do sleep 0.02; done; "
        "for p in /proc/[0-9]*; do "
        "if [ \"$(readlink $p/cwd)\" = \"$PWD\" ] && "
        "grep -q classify $p/comm && "
        "grep -qz '^OMPI_COMM_WORLD_RANK=2$' $p/environ; then kill -s ",
        signal, " ${p#/proc/}; fi; done; wait $run"));
  }

  void ExpectSame(const Outcome& outcome, const char* file) {
    EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
    EXPECT_EQ(outcome.out, expected_out_);
    EXPECT_TRUE(*ReadFile(Path(file)) == expected_) << file;
  }

  // Of a file, what a run may take, and for how long a rank may be silent.
  // Under a sanitizer an image takes ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr int kImages = 4000, kSeconds = 400, kSilence = 30;
#else
  static constexpr int kImages = 10000, kSeconds = 60, kSilence = 2;
#endif
  const std::string kFlags = "--data=part-*.idx --logits";
  std::vector<std::string> expected_out_;
  std::string expected_;
};

TEST_F(ClassifyRanksTest, FourRanksGiveTheSame) {
  const Outcome four = Ranks(4, kFlags + " --out=four.npy --record=run.json");
  ExpectSame(four, "four.npy");
  const auto record = ParseClassifyRecord(*ReadFile(Path("run.json")));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->ranks, 4);
  ASSERT_THAT(record->shares, SizeIs(4));
  for (const ClassifyShare& share : record->shares) {
    EXPECT_NE(share.host, "");
    EXPECT_GT(share.images, 0);
    // Messages would give the same answers, and more slowly.
    EXPECT_EQ(share.shared_pieces, share.rank == 0 ? 0 : share.pieces);
  }
  EXPECT_THAT(four.err, Contains(HasSubstr("pieces by shared memory,")));
  ExpectSame(Ranks(3, kFlags + " --read=each --out=each.npy"), "each.npy");
  // As between hosts.
  const Outcome sent =
      Ranks(3, kFlags + " --out=sent.npy", "CONVLAB_SHARED_MEMORY=0");
  ExpectSame(sent, "sent.npy");
  EXPECT_THAT(sent.err, Contains(HasSubstr("pieces by messages,")));
  // Read forward, and kept for the case that a rank is lost.
  Write("images.idx.gz", Gzip(images_));
  ASSERT_EQ(Run("classify", "images.idx --logits --out=plain.npy").exit_status,
            0);
  const Outcome packed =
      Ranks(3, "images.idx.gz --logits --tolerate=1 --out=packed.npy");
  EXPECT_EQ(packed.exit_status, 0) << absl::StrJoin(packed.err, "\n");
  EXPECT_TRUE(*ReadFile(Path("packed.npy")) == *ReadFile(Path("plain.npy")));
  for (const char* silence : {"0", "30s"}) {
    const Outcome wrong = Ranks(2, kFlags + " --out=wrong.npy",
                                absl::StrCat("CONVLAB_SILENCE=", silence));
    EXPECT_EQ(wrong.exit_status, 2);
    EXPECT_THAT(
        wrong.err,
        Contains(HasSubstr(absl::StrCat("CONVLAB_SILENCE is '", silence,
                                        "', expected seconds from 1"))));
  }
  const Outcome wrong = Ranks(2, "nothing.idx --out=wrong.npy");
  EXPECT_EQ(wrong.exit_status, 2);
  EXPECT_THAT(wrong.err, Contains(HasSubstr("nothing.idx")));
}

// As where a node has another build.
TEST_F(ClassifyRanksTest, ARankOfAnotherRevisionIsRefused) {
  std::string other = kGitRevision;
  other[0] = other[0] == 'a' ? 'b' : 'a';
  Shell(absl::StrCat("LC_ALL=C sed 's/", kGitRevision, "/", other, "/g' ",
                     Runfile(kClassify), " >other; chmod +x other"));
  const std::string arguments =
      absl::StrCat(" ", kFlags, " --threads=1 --device=cpu --out=answers.npy ");
  const Outcome outcome = Shell(absl::StrCat(
      "timeout ", kSeconds,
      " mpirun --oversubscribe --allow-run-as-root -np 2 ", Runfile(kClassify),
      arguments, ": -np 1 ./other", arguments, ">out"));
  EXPECT_EQ(outcome.exit_status, 2);
  EXPECT_THAT(outcome.err,
              Contains(AllOf(StartsWith("classify: rank 2 on "),
                             HasSubstr(absl::StrCat(" runs revision ", other,
                                                    ", expected ", kGitRevision,
                                                    " as on rank 0")))));
}

TEST_F(ClassifyRanksTest, AKilledRankIsToldAndTheRunResumed) {
  const std::string flags = kFlags + " --resume --out=answers.npy";
  const Outcome killed = RanksWithout2("KILL", flags);
  EXPECT_EQ(killed.exit_status, 1);
  const std::string told = absl::StrJoin(killed.err, "\n");
  EXPECT_THAT(told, HasSubstr("classify: rank 2 on "));
  EXPECT_THAT(told, HasSubstr("has ended"));
  EXPECT_THAT(told, HasSubstr(absl::StrCat("of ", 3 * kImages,
                                           " images are answered in ")));
  ExpectSame(Ranks(2, flags), "answers.npy");
}

// While rank 0 waits for images, and the others for the weights.
TEST_F(ClassifyRanksTest, ARankThatDiesBeforeTheWeightsCameIsTold) {
  const Outcome outcome = Shell(absl::StrCat(
      "mkfifo late.idx; timeout ", kSeconds, " ", Runfile("tools/cluster/mpi"),
      " ", Line(4, "late.idx --out=answers.npy"),
      " >out & run=$!; started=; "
      "until [ -n \"$started\" ] || ! kill -0 $run; do sleep 0.2; "
      "for p in /proc/[0-9]*; do "
      "if [ \"$(readlink $p/cwd)\" = \"$PWD\" ] && "
      "grep -q classify $p/comm && "
      "grep -qz '^OMPI_COMM_WORLD_RANK=2$' $p/environ && "
      "grep -q libmpi $p/maps; then started=${p#/proc/}; fi; done; done; "
      // It has joined: ranks join together.
      "sleep 2; kill -s KILL $started; cat images.idx >late.idx & wait $run"));
  EXPECT_EQ(outcome.exit_status, 1) << absl::StrJoin(outcome.err, "\n");
  EXPECT_THAT(outcome.err, Contains(AllOf(StartsWith("classify: rank 2 on "),
                                          HasSubstr("has ended"))));
}

TEST_F(ClassifyRanksTest, OthersDoWhatALostRankHad) {
  for (const char* signal : {"KILL", "STOP"}) {
    SCOPED_TRACE(signal);
    Shell("rm -f answers.npy*");
    const Outcome outcome = RanksWithout2(
        signal, kFlags + " --resume --tolerate=1 --out=answers.npy");
    ExpectSame(outcome, "answers.npy");
    EXPECT_THAT(outcome.err, Contains(HasSubstr("the others go on")));
  }
}

}  // namespace
}  // namespace convlab
