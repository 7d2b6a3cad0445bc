// Tests the milestones with users' data sets and weight files.
#include <unistd.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/dataset/fashion_mnist.h"
#include "common/dataset/resize.h"
#include "common/dataset/test_files.h"
#include "common/files/files.h"
#include "common/record/run_record.h"
#include "common/weights/safetensors.h"
#include "common/weights/test_files.h"
#include "common/weights/weights.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "milestones/program_testing.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

// A data folder with three images, which each test damages in one way.
class DataTest : public ProgramsTest {
 protected:
  void SetUp() override {
    ProgramsTest::SetUp();
    images_ = IdxFile({0x803, 3, 28, 28}, std::string(3 * 28 * 28, 'x'));
    labels_ = IdxFile({0x801, 3}, "\1\2\3");
  }

  void ExpectDataRefused(const std::vector<std::string>& words) {
    Write("t10k-images-idx3-ubyte", images_);
    Write("t10k-labels-idx1-ubyte", labels_);
    ExpectRefused("final", "--data=.", words);
  }

  std::string images_;
  std::string labels_;
};

TEST_F(DataTest, ASmallDataSetIsFine) {
  Write("t10k-images-idx3-ubyte.gz", Gzip(images_));
  Write("t10k-labels-idx1-ubyte", labels_);
  const Outcome outcome = Run("final", "--data=.");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.out, ::testing::Contains(HasSubstr("Correctness: ")));
}

TEST_F(DataTest, MissingFolder) {
  ExpectRefused("final", "--data=nowhere", {"nowhere", "tools/setup.sh"});
}

TEST_F(DataTest, TruncatedGzip) {
  images_ = Gzip(images_);
  images_.resize(images_.size() / 2);
  ExpectDataRefused({"t10k-images-idx3-ubyte", "gzip"});
}

TEST_F(DataTest, WrongMagic) {
  images_[3] = 7;
  ExpectDataRefused({"t10k-images-idx3-ubyte", "magic"});
}

TEST_F(DataTest, CountsDiffer) {
  labels_ = IdxFile({0x801, 2}, "\1\2");
  ExpectDataRefused({"3 images", "2 labels"});
}

TEST_F(DataTest, FileLongerThanItsHeaderSays) {
  images_ += "x";
  ExpectDataRefused({"t10k-images-idx3-ubyte", "2352", "2353"});
}

TEST_F(DataTest, FileShorterThanItsHeaderSays) {
  labels_.pop_back();
  ExpectDataRefused({"t10k-labels-idx1-ubyte", "says 3", "holds 2"});
}

TEST_F(DataTest, AbsurdDimensions) {
  images_ = IdxFile({0x803, 0x7fffffff, 0x7fffffff, 28}, "x");
  ExpectDataRefused({"t10k-images-idx3-ubyte", "2147483647"});
}

TEST_F(DataTest, ImagesOfAnotherSize) {
  images_ = IdxFile({0x803, 3, 30, 30}, std::string(3 * 30 * 30, 'x'));
  ExpectDataRefused({"30x30", "28x28 or 70x70"});
}

TEST_F(DataTest, GzipBomb) {
  images_ = Gzip(IdxFile({0x803, 3, 28, 28}, std::string(1 << 20, 'x')));
  ExpectDataRefused({"2352 bytes behind it, the file holds more"});
}

// The course's files have little-endian headers and images that are already
// enlarged.
TEST_F(DataTest, TheCoursesFiles) {
  const Outcome expected = Run("final", "fa19 20");
  ASSERT_EQ(expected.exit_status, 0);
  const Dataset dataset = *LoadFashionMnist(FashionMnistFolder(), "t10k");
  constexpr int kSize = 70;
  std::vector<uint8_t> enlarged(20 * kSize * kSize);
  EnlargeImages(dataset.images.pixels.data(), 20, 28, kSize, enlarged.data());
  Write("t10k-images-idx3-ubyte",
        IdxFile({0x803, 20, kSize, kSize},
                std::string(enlarged.begin(), enlarged.end()),
                ByteOrder::kLittle));
  Write(
      "t10k-labels-idx1-ubyte",
      IdxFile({0x801, 20},
              std::string(dataset.labels.begin(), dataset.labels.begin() + 20),
              ByteOrder::kLittle));
  const Outcome outcome = Run("final", "fa19 --data=.");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_EQ(CorrectnessOf(outcome), CorrectnessOf(expected));
}

// A million images take little more memory than their 784 MB of bytes.
TEST_F(DataTest, ManyImagesAreHeldOnce) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  constexpr int64_t kImages = 1000000;
  Write("t10k-images-idx3-ubyte", IdxFile({0x803, kImages, 28, 28}, ""));
  Write("t10k-labels-idx1-ubyte", IdxFile({0x801, kImages}, ""));
  // The rest are zeros, which take no space on the disk.
  ASSERT_EQ(
      truncate(Path("t10k-images-idx3-ubyte").c_str(), 16 + kImages * 28 * 28),
      0);
  ASSERT_EQ(truncate(Path("t10k-labels-idx1-ubyte").c_str(), 8 + kImages), 0);
  const Outcome outcome =
      Run("final", "fa17-high 5 --data=. --device=cpu --record=r.json");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_LT(ReadRunRecord(Path("r.json"))->usage.max_resident_bytes,
            int64_t{1000} << 20);
}

// Tests of weight files, made from the trained ones where possible.
class WeightsTest : public ProgramsTest {
 protected:
  TensorFile Trained(absl::string_view network) {
    return *ParseSafetensors(*ReadFile(Model(network)));
  }
  void ExpectWeightsRefused(const std::string& content,
                            const std::vector<std::string>& words) {
    Write("w", content);
    ExpectRefused("final", "fa20 10 --weights=w", words);
  }
  // The trained weights in another format give the same answers.
  void ExpectTrainedAnswers(absl::string_view network,
                            const std::string& content) {
    Write("w", content);
    const Outcome expected = Run("final", absl::StrCat(network, " 100"));
    ASSERT_EQ(expected.exit_status, 0);
    const Outcome outcome =
        Run("final", absl::StrCat(network, " 100 --weights=w"));
    EXPECT_EQ(outcome.exit_status, 0) << absl::StrJoin(outcome.err, "\n");
    EXPECT_EQ(CorrectnessOf(outcome), CorrectnessOf(expected));
  }
};

TEST_F(WeightsTest, OfAnotherNetwork) {
  ExpectRefused(
      "final", "fa19 10 --weights=" + Model("fa18"),
      {"fa18.safetensors", "conv1.weight", "fa19", "[12,1,7,7]", "[12,1,5,5]"});
}

TEST_F(WeightsTest, OfAnotherNetworkOfTheSameShapes) {
  ExpectRefused("final", "fa17-high 10 --weights=" + Model("fa17-low"),
                {"fa17-low.safetensors", "names network 'fa17-low'",
                 "expected fa17-high"});
}

TEST_F(WeightsTest, MxnetParams) {
  TensorFile file = Trained("fa19");
  const std::map<std::string, std::string> names = {
      {"conv1.weight", "arg:new0_weight"},
      {"conv2.weight", "arg:new1_weight"},
      {"fc1.weight", "arg:fullyconnected0_weight"},
      {"fc1.bias", "arg:fullyconnected0_bias"},
      {"fc2.weight", "arg:fullyconnected1_weight"},
      {"fc2.bias", "arg:fullyconnected1_bias"}};
  for (Tensor& tensor : file.tensors) tensor.name = names.at(tensor.name);
  ExpectTrainedAnswers("fa19",
                       MxnetFile(MxnetHeader::kStorageType, file.tensors));
}

TEST_F(WeightsTest, MiniDnn) {
  std::map<std::string, std::vector<float>> tensors;
  for (const Tensor& tensor : Trained("fa20").tensors) {
    tensors[tensor.name] = tensor.values;
  }
  // The file has biases for the convolutions, which the network does not use.
  const auto join = [](std::vector<float> weight, std::vector<float> bias) {
    weight.insert(weight.end(), bias.begin(), bias.end());
    return weight;
  };
  const std::string file =
      MiniDnnFile({join(tensors["conv1.weight"], std::vector<float>(4, 1e6f)),
                   {},
                   {},
                   join(tensors["conv2.weight"], std::vector<float>(16, 1e6f)),
                   {},
                   {},
                   join(tensors["fc1.weight"], tensors["fc1.bias"]),
                   {},
                   join(tensors["fc2.weight"], tensors["fc2.bias"]),
                   {}});
  ExpectTrainedAnswers("fa20", file);
}

TEST_F(WeightsTest, Missing) {
  ExpectRefused("final", "10 --weights=nothing", {"cannot read", "nothing"});
}

TEST_F(WeightsTest, WithNan) {
  TensorFile file = Trained("fa20");
  file.tensors[0].values[5] = std::numeric_limits<float>::quiet_NaN();
  ExpectWeightsRefused(*SerializeSafetensors(file), {"nan", "conv1.weight"});
}

TEST_F(WeightsTest, OfUnknownType) {
  std::string content = *ReadFile(Model("fa20"));
  content.replace(content.find("\"F16\""), 5, "\"F61\"");
  ExpectWeightsRefused(content, {"F61"});
}

TEST_F(WeightsTest, Truncated) {
  const std::string content = *ReadFile(Model("fa20"));
  ExpectWeightsRefused(content.substr(0, content.size() - 100), {"w: "});
  ExpectWeightsRefused(content.substr(0, 50), {"w: "});
  ExpectWeightsRefused("", {"w: "});
}

TEST_F(WeightsTest, OfUnknownMxnetStorageOrType) {
  const auto params = [](int32_t storage, int32_t type) {
    return absl::StrCat(
        Bytes(uint64_t{0x112}), Bytes(uint64_t{0}), Bytes(uint64_t{1}),
        Bytes(uint32_t{0xF993FAC9}), Bytes(storage), Bytes(uint32_t{1}),
        Bytes(int64_t{1}), Bytes(int32_t{1}), Bytes(int32_t{0}), Bytes(type),
        FloatBytes({0}), Bytes(uint64_t{1}), Bytes(uint64_t{1}), "a");
  };
  ExpectWeightsRefused(params(1, 0), {"storage type 1"});
  ExpectWeightsRefused(params(0, 4), {"type 4"});
  ExpectWeightsRefused(params(0, 0), {"w: "});
}

// The count that the weight file states decides, and every milestone asks it.
TEST_F(ProgramsTest, AnUnexpectedNumberOfCorrectAnswersIsTold) {
  WriteMiscounted("mine.safetensors");
  for (const char* command :
       {"m1 sp19 100 --device cpu", "m2 sp19 100 --variant dense_lanes",
        "m3 sp19 100 --device cpu", "final sp19 100 --device cpu",
        "m4 sp19 100 --device cpu --variant vectorized"}) {
    SCOPED_TRACE(command);
    const std::string line =
        absl::StrCat(Runfile("milestones/"), command,
                     " --weights mine.safetensors --record r.json --threads 2");
    constexpr char kSaid[] =
        "90 correct answers, where the weight file says 91";
    Outcome outcome = Shell(absl::StrCat("unset CI; ", line));
    EXPECT_EQ(outcome.exit_status, 0);
    EXPECT_THAT(outcome.err.back(), HasSubstr(kSaid));
    EXPECT_EQ(ReadRunRecord(Path("r.json"))->count_error, kSaid);
    outcome = Shell(absl::StrCat("CI=1 ", line));
    EXPECT_EQ(outcome.exit_status, 1);
    EXPECT_THAT(outcome.err.back(), HasSubstr(kSaid));
  }
  const std::string line = absl::StrCat(
      Runfile("milestones/m2"),
      " sp19 100 --variant dense_lanes --weights mine.safetensors");
  EXPECT_EQ(Shell(absl::StrCat("unset CI; ", line, " --strict")).exit_status,
            1);
  EXPECT_EQ(Shell(absl::StrCat("CI=1 ", line, " --nostrict")).exit_status, 0);
  const Outcome repeated = Shell(absl::StrCat("CI=1 ", line, " --repeat 2"));
  EXPECT_EQ(repeated.exit_status, 1);
  EXPECT_THAT(repeated.err.back(), HasSubstr("repetition 1 has 90 correct"));
  // A ladder whose variants agree is wrong as a whole.
  const Outcome ladder = Shell(absl::StrCat(
      Runfile("milestones/m4"),
      " sp19 100 --device cpu --strict --weights mine.safetensors"));
  EXPECT_EQ(ladder.exit_status, 1);
  EXPECT_THAT(ladder.err.back(), HasSubstr("where the weight file says 91"));
}

}  // namespace
}  // namespace convlab
