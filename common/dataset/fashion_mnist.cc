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

std::string ImagesName(absl::string_view split) {
  return absl::StrCat(split, "-images-idx3-ubyte");
}

absl::StatusOr<std::vector<uint8_t>> ReadLabels(const std::string& folder,
                                                absl::string_view split) {
  return ReadGzippedOrPlain(folder, absl::StrCat(split, "-labels-idx1-ubyte"),
                            &ReadIdxLabels);
}

absl::Status CheckFolder(const std::string& folder, absl::string_view split) {
  if (split != "t10k" && split != "train") {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown split '", split, "': expected t10k or train"));
  }
  struct stat info;
  if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return absl::NotFoundError(
        absl::StrCat("there is no folder ", folder, kWayOn));
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const std::string& folder, absl::string_view split,
                        int height, int width, int64_t count,
                        const std::vector<uint8_t>& labels) {
  if (height != width) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", split, " images in ", folder, " are ", height,
                     " x ", width, ", expected square ones"));
  }
  if (count != static_cast<int64_t>(labels.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", split, " split in ", folder, " has ", count, " images and ",
        labels.size(), " labels, expected as many"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string FashionMnistFolder() {
  const char* const folder = std::getenv("CONVLAB_DATA");
  if (folder != nullptr && *folder != '\0') return folder;
  return "/usr/share/datasets/fashion-mnist";
}

absl::StatusOr<Dataset> LoadFashionMnist(const std::string& folder,
                                         absl::string_view split) {
  Dataset dataset;
  RETURN_IF_ERROR(CheckFolder(folder, split));
  ASSIGN_OR_RETURN(dataset.images, ReadGzippedOrPlain(folder, ImagesName(split),
                                                      &ReadIdxImages));
  ASSIGN_OR_RETURN(dataset.labels, ReadLabels(folder, split));
  RETURN_IF_ERROR(CheckSizes(folder, split, dataset.images.height,
                             dataset.images.width, dataset.images.count,
                             dataset.labels));
  return dataset;
}

absl::StatusOr<DatasetStream> OpenFashionMnist(const std::string& folder,
                                               absl::string_view split) {
  DatasetStream dataset;
  RETURN_IF_ERROR(CheckFolder(folder, split));
  ASSIGN_OR_RETURN(dataset.images, ReadGzippedOrPlain(folder, ImagesName(split),
                                                      &IdxImageStream::Open));
  ASSIGN_OR_RETURN(dataset.labels, ReadLabels(folder, split));
  RETURN_IF_ERROR(CheckSizes(folder, split, dataset.images->height(),
                             dataset.images->width(), dataset.images->count(),
                             dataset.labels));
  return dataset;
}

}  // namespace convlab
