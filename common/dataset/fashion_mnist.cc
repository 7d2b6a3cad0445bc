#include "common/dataset/fashion_mnist.h"

#include <sys/stat.h>

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"

namespace convlab {
namespace {

constexpr char kWayOn[] =
    "; tools/setup.sh installs Fashion-MNIST, --data or CONVLAB_DATA names "
    "another folder";

// Reads `name`.gz in `folder`, or `name` if there is no such file.
template <typename T>
absl::StatusOr<T> ReadGzippedOrPlain(
    const std::string& folder, absl::string_view name,
    absl::StatusOr<T> (*read)(const std::string&)) {
  absl::StatusOr<T> result = read(absl::StrCat(folder, "/", name, ".gz"));
  if (!absl::IsNotFound(result.status())) return result;
  result = read(absl::StrCat(folder, "/", name));
  if (!absl::IsNotFound(result.status())) return result;
  return absl::NotFoundError(absl::StrCat("there is neither ", name, ".gz nor ",
                                          name, " in ", folder, kWayOn));
}

}  // namespace

std::string FashionMnistFolder() {
  const char* const folder = std::getenv("CONVLAB_DATA");
  if (folder != nullptr && *folder != '\0') return folder;
  return "/usr/share/datasets/fashion-mnist";
}

absl::StatusOr<Dataset> LoadFashionMnist(const std::string& folder,
                                         absl::string_view split) {
  if (split != "t10k" && split != "train") {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown split '", split, "': expected t10k or train"));
  }
  struct stat info;
  if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return absl::NotFoundError(
        absl::StrCat("there is no folder ", folder, kWayOn));
  }
  Dataset dataset;
  ASSIGN_OR_RETURN(
      dataset.images,
      ReadGzippedOrPlain(folder, absl::StrCat(split, "-images-idx3-ubyte"),
                         &ReadIdxImages));
  ASSIGN_OR_RETURN(
      dataset.labels,
      ReadGzippedOrPlain(folder, absl::StrCat(split, "-labels-idx1-ubyte"),
                         &ReadIdxLabels));
  const ImageSet& images = dataset.images;
  if (images.height != images.width) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", split, " images in ", folder, " are ", images.height, " x ",
        images.width, ", expected square ones"));
  }
  if (images.count != static_cast<int64_t>(dataset.labels.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", split, " split in ", folder, " has ", images.count,
        " images and ", dataset.labels.size(), " labels, expected as many"));
  }
  return dataset;
}

}  // namespace convlab
