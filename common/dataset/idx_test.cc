#include "common/dataset/idx.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/dataset/test_files.h"
#include "common/files/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kImages = 0x803;
constexpr uint32_t kLabels = 0x801;

// Two images of 2 x 3 pixels.
std::string SmallImages(ByteOrder order = ByteOrder::kBig) {
  return IdxFile({kImages, 2, 2, 3}, "abcdefABCDEF", order);
}

// Expects that `content` is rejected with `message` in the error.
void ExpectImagesError(absl::string_view content, const std::string& message) {
  const absl::Status status = ParseIdxImages(content).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

void ExpectLabelsError(absl::string_view content, const std::string& message) {
  const absl::Status status = ParseIdxLabels(content).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(Idx, ImagesInBothByteOrdersGzippedAndPlain) {
  for (const ByteOrder order : {ByteOrder::kBig, ByteOrder::kLittle}) {
    const std::string plain = SmallImages(order);
    for (const std::string& content : {plain, Gzip(plain)}) {
      const auto images = ParseIdxImages(content);
      ASSERT_TRUE(images.ok()) << images.status();
      EXPECT_EQ(images->count, 2);
      EXPECT_EQ(images->height, 2);
      EXPECT_EQ(images->width, 3);
      EXPECT_EQ(std::string(images->pixels.begin(), images->pixels.end()),
                "abcdefABCDEF");
    }
  }
}

TEST(Idx, LabelsInBothByteOrdersGzippedAndPlain) {
  for (const ByteOrder order : {ByteOrder::kBig, ByteOrder::kLittle}) {
    const std::string plain =
        IdxFile({kLabels, 3}, absl::string_view("\x09\x00\x04", 3), order);
    for (const std::string& content : {plain, Gzip(plain)}) {
      const auto labels = ParseIdxLabels(content);
      ASSERT_TRUE(labels.ok()) << labels.status();
      EXPECT_THAT(*labels, ElementsAre(9, 0, 4));
    }
  }
}

TEST(Idx, GzipFilesOfSeveralMembers) {
  const std::string plain = SmallImages();
  EXPECT_EQ(
      ParseIdxImages(Gzip(plain.substr(0, 5)) + Gzip(plain.substr(5)))->pixels,
      ParseIdxImages(plain)->pixels);
}

// The file is larger than any internal buffer and is cut at every power of two.
TEST(Idx, LargeFiles) {
  std::string pixels(300 * 28 * 28, '\0');
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = char(i * 7 + i / 251);
  const std::string plain = IdxFile({kImages, 300, 28, 28}, pixels);
  for (const std::string& content : {plain, Gzip(plain)}) {
    const auto images = ParseIdxImages(content);
    ASSERT_TRUE(images.ok()) << images.status();
    EXPECT_EQ(std::string(images->pixels.begin(), images->pixels.end()),
              pixels);
  }
  for (size_t size = 16; size < plain.size(); size *= 2) {
    ExpectImagesError(
        Gzip(plain.substr(0, size)),
        absl::StrCat("235200 bytes behind it, the file holds ", size - 16));
  }
}

TEST(Idx, DamagedGzip) {
  const std::string good = Gzip(SmallImages());
  ExpectImagesError(good.substr(0, good.size() - 9), "truncated gzip");
  // Only the checksum is cut off or wrong.
  ExpectImagesError(good.substr(0, good.size() - 1), "truncated gzip");
  std::string bad = good;
  bad[bad.size() - 8] ^= 1;
  ExpectImagesError(bad, "incorrect data check");
  ExpectImagesError(good + "tail", "damaged gzip");
  ExpectImagesError("\x1f\x8b", "truncated gzip: the file's 2 bytes");
}

TEST(Idx, WrongMagicNumber) {
  ExpectImagesError(IdxFile({kLabels, 12}, "123456789012"),
                    "magic number 0x00000801 (labels), expected 0x00000803 "
                    "(images)");
  ExpectLabelsError(SmallImages(ByteOrder::kLittle),
                    "magic number 0x00000803 (images), expected 0x00000801 "
                    "(labels)");
  ExpectImagesError(IdxFile({0x0d03, 1, 1, 1}, "1234"),
                    "magic number 0x00000d03, expected 0x00000803");
}

TEST(Idx, HeaderCutOff) {
  ExpectImagesError("", "ends after 0 bytes, within the IDX header of 16");
  ExpectImagesError(SmallImages().substr(0, 15), "ends after 15 bytes");
  ExpectLabelsError(IdxFile({kLabels}, ""), "IDX header of 8");
}

TEST(Idx, FileLongerOrShorterThanItsHeaderSays) {
  for (const std::string bytes : {"abcdefABCDE", "abcdefABCDEFG"}) {
    const std::string plain = IdxFile({kImages, 2, 2, 3}, bytes);
    const std::string message = absl::StrCat(
        "2 x 2 x 3 = 12 bytes behind it, the file holds ", bytes.size());
    ExpectImagesError(plain, message);
    ExpectImagesError(Gzip(plain), message);
  }
}

// Megabytes of zeros compress to a few kilobytes; reading stops long before
// their end.
TEST(Idx, GzipBombs) {
  const std::string bomb = IdxFile({kImages, 2, 2, 3}, std::string(1 << 20, 0));
  const std::string message = "= 12 bytes behind it, the file holds more";
  ExpectImagesError(bomb, message);
  ExpectImagesError(Gzip(bomb), message);
  // Damage after that point is not even noticed.
  const std::string packed = Gzip(bomb);
  ExpectImagesError(packed.substr(0, packed.size() - 9), message);
  // A header that lies about a large file.
  ExpectLabelsError(
      Gzip(IdxFile({kLabels, 0x3fffffff}, std::string(5 << 20, 0))),
      "the file holds 5242880");
}

// Each way of reading returns the whole content.
TEST(Idx, LargeFilesFromDisk) {
  std::string pixels(5000 * 28 * 28, '\0');
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = char(i * 7 + i / 251);
  const std::string plain = IdxFile({kImages, 5000, 28, 28}, pixels);
  const std::string path = absl::StrCat(::testing::TempDir(), "/images");
  for (const std::string& content : {plain, Gzip(plain)}) {
    ASSERT_TRUE(WriteFileAtomically(path, content).ok());
    const auto images = ReadIdxImages(path);
    ASSERT_TRUE(images.ok()) << images.status();
    EXPECT_EQ(images->count, 5000);
    EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), images->pixels.begin(),
                           images->pixels.end(),
                           [](char a, uint8_t b) { return uint8_t(a) == b; }));
    // The buffer was not grown by doubling.
    EXPECT_EQ(images->pixels.capacity(), pixels.size());
  }
}

TEST(Idx, AbsurdDimensions) {
  ExpectImagesError(IdxFile({kImages, 0, 2, 3}, ""), "count is 0");
  ExpectImagesError(IdxFile({kImages, 2, 2, 0}, ""), "width is 0");
  ExpectImagesError(IdxFile({kImages, 2, 0xfffffffe, 3}, ""), "height is -2");
  // 2^31 - 1 three times overflows 64 bits.
  const uint32_t huge = 0x7fffffff;
  ExpectImagesError(IdxFile({kImages, huge, huge, huge}, ""),
                    "more than the 1073741824 that are accepted");
  // Product 0 modulo 2^64.
  ExpectImagesError(IdxFile({kImages, 0x40000000, 0x40000000, 0x40000000}, ""),
                    "more than");
  // The header is accepted, but 1 GiB is not allocated for four bytes.
  ExpectLabelsError(IdxFile({kLabels, huge / 2}, "1234"), "the file holds 4");
  ExpectLabelsError(IdxFile({kLabels, huge}, "1234"), "more than");
}

TEST(Idx, LabelsOutsideTheClasses) {
  ExpectLabelsError(IdxFile({kLabels, 3}, absl::string_view("\0\x09\x0a", 3)),
                    "label 10 at index 2, expected 0 to 9");
}

TEST(Idx, ErrorsNameTheFile) {
  const std::string images = absl::StrCat(::testing::TempDir(), "/none-images");
  EXPECT_EQ(ReadIdxImages(images).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadIdxImages("/dev/null").status().message()),
              HasSubstr("/dev/null: the file ends after 0 bytes"));
  EXPECT_THAT(std::string(ReadIdxLabels("/dev/null").status().message()),
              HasSubstr("/dev/null: the file ends after 0 bytes"));
}

class IdxStream : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<IdxImageStream>> Open(
      absl::string_view content) {
    path_ = ::testing::TempDir() + "/stream";
    EXPECT_TRUE(WriteFileAtomically(path_, content).ok());
    return IdxImageStream::Open(path_);
  }

  // Reads all images, at most `most` at a time, and returns their pixels.
  absl::StatusOr<std::string> ReadAll(absl::string_view content, int64_t most) {
    auto stream = Open(content);
    if (!stream.ok()) return stream.status();
    const int64_t size = (*stream)->height() * (*stream)->width();
    std::string pixels;
    for (;;) {
      std::vector<uint8_t> piece(most * size);
      const auto count = (*stream)->Read(most, piece.data());
      if (!count.ok()) return count.status();
      pixels.append(piece.begin(), piece.begin() + *count * size);
      if (*count < most) return pixels;
    }
  }

  void ExpectError(absl::string_view content, const std::string& message) {
    const absl::Status status = ReadAll(content, 2).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                ::testing::AllOf(HasSubstr(path_), HasSubstr(message)));
  }

  std::string path_;
};

TEST_F(IdxStream, GivesTheImagesPieceByPiece) {
  const std::string pixels = "abcdefghijABCDEFGHIJ";
  const std::string content = IdxFile({kImages, 5, 2, 2}, pixels);
  for (const int64_t most : {1, 2, 4, 5, 100}) {
    EXPECT_EQ(*ReadAll(content, most), pixels) << most;
    EXPECT_EQ(*ReadAll(Gzip(content), most), pixels) << most;
  }
  const auto stream = Open(content);
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ((*stream)->count(), 5);
  EXPECT_EQ((*stream)->height(), 2);
  EXPECT_EQ((*stream)->width(), 2);
}

TEST_F(IdxStream, EndsWithinAnImage) {
  const std::string content = IdxFile({kImages, 5, 2, 2}, "abcdefghijA");
  ExpectError(content, "the data end after 3 of the 4 bytes of image 2");
  ExpectError(Gzip(content), "the data end after 3 of the 4 bytes of image 2");
  ExpectError(IdxFile({kImages, 2, 2, 2}, "abcd"),
              "the data end after 0 of the 4 bytes of image 1");
  const std::string gzipped = Gzip(content);
  ExpectError(gzipped.substr(0, gzipped.size() - 9), "truncated gzip");
}

TEST_F(IdxStream, GoesOnBehindTheLastImage) {
  ExpectError(IdxFile({kImages, 2, 2, 2}, "abcdefghi"),
              "2 x 2 x 2 = 8 bytes behind it, the file holds 9");
}

// The file may have more images than memory, but not larger ones.
TEST_F(IdxStream, OnlyAnImagesSizeIsLimited) {
  EXPECT_TRUE(Open(IdxFile({kImages, 0x7fffffff, 28, 28}, "")).ok());
  ExpectError(IdxFile({kImages, 1, 0x10000, 0x10001}, ""), "more than");
  ExpectError(IdxFile({kImages, 1, 0x7fffffff, 0x7fffffff}, ""), "more than");
  ExpectError(IdxFile({kImages, 0, 2, 2}, ""), "count is 0");
  ExpectError(IdxFile({kLabels, 1}, "a").substr(0, 8) + "aaaaaaaaa", "magic");
}

}  // namespace
}  // namespace convlab
