#include "common/dataset/fashion_mnist.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/dataset/test_files.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

// A fresh folder, into which a test puts the files it needs.
class FashionMnistTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(::testing::TempDir(), "/data.XXXXXX");
    folder_ = mkdtemp(pattern.data());
  }
  void Write(absl::string_view name, absl::string_view content) {
    ASSERT_TRUE(
        WriteFileAtomically(absl::StrCat(folder_, "/", name), content).ok());
  }
  void ExpectError(absl::StatusCode code, const std::string& message) {
    const absl::Status status = LoadFashionMnist(folder_, "t10k").status();
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  std::string folder_;
};

const std::string& TwoImages() {
  static const auto* const file =
      new std::string(IdxFile({0x803, 2, 2, 2}, "abcdABCD"));
  return *file;
}

std::string Labels(uint32_t count) {
  return IdxFile({0x801, count}, std::string(count, '\x07'));
}

TEST_F(FashionMnistTest, DebiansFilesAreFashionMnist) {
  for (const auto& [split, count] :
       {std::pair("t10k", 10000), std::pair("train", 60000)}) {
    const auto dataset = LoadFashionMnist(FashionMnistFolder(), split);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ(dataset->images.count, count);
    EXPECT_EQ(dataset->images.height, 28);
    EXPECT_EQ(dataset->images.width, 28);
    // Each class has as many images as any other.
    for (int label = 0; label < 10; ++label) {
      EXPECT_EQ(
          std::count(dataset->labels.begin(), dataset->labels.end(), label),
          count / 10);
    }
  }
}

TEST_F(FashionMnistTest, TheEnvironmentNamesTheFolder) {
  const char* const given = getenv("CONVLAB_DATA");
  const std::string before = given == nullptr ? "" : given;
  setenv("CONVLAB_DATA", "/elsewhere", 1);
  EXPECT_EQ(FashionMnistFolder(), "/elsewhere");
  setenv("CONVLAB_DATA", "", 1);
  EXPECT_EQ(FashionMnistFolder(), "/usr/share/datasets/fashion-mnist");
  if (!before.empty()) setenv("CONVLAB_DATA", before.c_str(), 1);
}

TEST_F(FashionMnistTest, TakesGzippedBeforePlain) {
  Write("t10k-images-idx3-ubyte", TwoImages());
  Write("t10k-labels-idx1-ubyte", Labels(2));
  ASSERT_TRUE(LoadFashionMnist(folder_, "t10k").ok());
  EXPECT_EQ(LoadFashionMnist(folder_, "t10k")->images.pixels[0], 'a');
  Write("t10k-images-idx3-ubyte.gz",
        Gzip(IdxFile({0x803, 2, 2, 2}, "ABCDabcd")));
  EXPECT_EQ(LoadFashionMnist(folder_, "t10k")->images.pixels[0], 'A');
}

TEST_F(FashionMnistTest, MissingFilesNameTheWayOn) {
  ExpectError(absl::StatusCode::kNotFound,
              absl::StrCat("neither t10k-images-idx3-ubyte.gz nor "
                           "t10k-images-idx3-ubyte in ",
                           folder_, "; tools/setup.sh"));
  folder_ += "/none";
  ExpectError(absl::StatusCode::kNotFound,
              absl::StrCat("no folder ", folder_, "; tools/setup.sh"));
  ExpectError(absl::StatusCode::kNotFound, "--data");
}

TEST_F(FashionMnistTest, DamagedFileIsNamed) {
  Write("t10k-images-idx3-ubyte.gz", "\x1f\x8b");
  Write("t10k-images-idx3-ubyte", TwoImages());
  ExpectError(absl::StatusCode::kInvalidArgument,
              absl::StrCat(folder_, "/t10k-images-idx3-ubyte.gz: truncated"));
}

TEST_F(FashionMnistTest, CountsMustAgree) {
  Write("t10k-images-idx3-ubyte", TwoImages());
  Write("t10k-labels-idx1-ubyte", Labels(3));
  ExpectError(absl::StatusCode::kInvalidArgument, "2 images and 3 labels");
}

TEST_F(FashionMnistTest, ImagesMustBeSquare) {
  Write("t10k-images-idx3-ubyte", IdxFile({0x803, 2, 1, 4}, "abcdABCD"));
  Write("t10k-labels-idx1-ubyte", Labels(2));
  ExpectError(absl::StatusCode::kInvalidArgument, "are 1 x 4");
}

TEST_F(FashionMnistTest, UnknownSplit) {
  const absl::Status status =
      LoadFashionMnist(FashionMnistFolder(), "test").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'test'"));
}

}  // namespace
}  // namespace convlab
