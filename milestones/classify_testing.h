// What tests of classify share.
#ifndef MILESTONES_CLASSIFY_TESTING_H_
#define MILESTONES_CLASSIFY_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/dataset/fashion_mnist.h"
#include "common/dataset/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "milestones/program_testing.h"

namespace convlab {

inline constexpr char kClassify[] = "milestones/classify";

class ClassifyTest : public ProgramsTest {
 protected:
  // The first `count` test images and their labels as files "images.idx" and
  // "labels.idx".
  void WriteImages(int64_t count) {
    const auto data = LoadFashionMnist(FashionMnistFolder(), "t10k");
    ASSERT_TRUE(data.ok()) << data.status();
    pixels_.assign(data->images.pixels.begin(),
                   data->images.pixels.begin() + count * 28 * 28);
    labels_.assign(data->labels.begin(), data->labels.begin() + count);
    const uint32_t size = static_cast<uint32_t>(count);
    images_ = IdxFile({0x803, size, 28, 28}, pixels_);
    Write("images.idx", images_);
    Write("labels.idx", IdxFile({0x801, size}, labels_));
  }

  // Expects one line of error with these words, the exit status, and that no
  // file of answers is there.
  void ExpectFailure(const Outcome& outcome, int status,
                     const std::vector<std::string>& words) {
    EXPECT_EQ(outcome.exit_status, status);
    ASSERT_FALSE(outcome.err.empty());
    const std::string& line = outcome.err.back();
    EXPECT_THAT(line, ::testing::StartsWith("classify: "));
    for (const std::string& word : words) {
      EXPECT_THAT(line, ::testing::HasSubstr(word));
    }
    // Before it there may only be the line that names the device.
    EXPECT_LE(outcome.err.size(), 2u) << absl::StrJoin(outcome.err, "\n");
    EXPECT_THAT(Shell("ls | grep answers >out").out, ::testing::SizeIs(0));
  }

  std::string pixels_, labels_, images_;
};

}  // namespace convlab

#endif  // MILESTONES_CLASSIFY_TESTING_H_
