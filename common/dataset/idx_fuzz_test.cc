// IDX files of images and of labels, plain and gzipped.

#include <cstdlib>
#include <string>

#include "common/dataset/idx.h"
#include "common/dataset/test_files.h"
#include "tools/fuzz/seeds.h"

namespace convlab {
namespace {

void Require(bool property) {
  if (!property) std::abort();
}

void CheckImages(const absl::StatusOr<ImageSet>& images) {
  if (!images.ok()) {
    Require(absl::IsInvalidArgument(images.status()));
    return;
  }
  Require(images->count > 0 && images->height > 0 && images->width > 0);
  Require(images->pixels.size() ==
          size_t(images->count) * images->height * images->width);
}

void CheckLabels(const absl::StatusOr<std::vector<uint8_t>>& labels) {
  if (!labels.ok()) {
    Require(absl::IsInvalidArgument(labels.status()));
    return;
  }
  Require(!labels->empty());
  for (const uint8_t label : *labels) Require(label < 10);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  std::vector<std::string> seeds;
  for (const ByteOrder order : {ByteOrder::kBig, ByteOrder::kLittle}) {
    const std::string images =
        IdxFile({0x803, 3, 2, 4}, "abcdefghijklmnopqrstuvwx", order);
    const std::string labels = IdxFile(
        {0x801, 6}, absl::string_view("\0\x01\x02\x03\x04\x09", 6), order);
    for (const std::string& plain : {images, labels}) {
      seeds.push_back(plain);
      seeds.push_back(Gzip(plain));
    }
  }
  return seeds;
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  const absl::string_view content(reinterpret_cast<const char*>(data), size);
  const auto images = ParseIdxImages(content);
  const auto labels = ParseIdxLabels(content);
  CheckImages(images);
  CheckLabels(labels);
  Require(!images.ok() || !labels.ok());

  // Compressing the input must not change the result. Mutations of a gzip file
  // seldom pass its checksum; compressing mutated content reaches the code
  // behind that check.
  const bool gzipped = size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
  if (gzipped) return 0;
  const std::string again = Gzip(content);
  const auto unzipped_images = ParseIdxImages(again);
  const auto unzipped_labels = ParseIdxLabels(again);
  Require(unzipped_images.status() == images.status());
  Require(unzipped_labels.status() == labels.status());
  Require(!images.ok() || unzipped_images->pixels == images->pixels);
  Require(!labels.ok() || *unzipped_labels == *labels);
  return 0;
}
