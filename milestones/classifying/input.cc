#include "milestones/classifying/input.h"

#include <sys/stat.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/dataset/fashion_mnist.h"
#include "common/dataset/idx.h"
#include "common/files/files.h"
#include "common/status/status.h"
#include "kernels/inference/inference.h"

namespace convlab {
namespace {

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<ClassifyInput> OpenFolder(const ClassifyOptions& options) {
  ClassifyInput input;
  ASSIGN_OR_RETURN(DatasetStream data,
                   OpenFashionMnist(options.input, options.split));
  std::vector<std::unique_ptr<IdxImageStream>> files;
  files.push_back(std::move(data.images));
  ASSIGN_OR_RETURN(input.images, ImageFiles::Of(std::move(files)));
  input.labels = std::move(data.labels);
  return input;
}

absl::StatusOr<ClassifyInput> OpenFiles(const std::string& pattern) {
  ClassifyInput input;
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   MatchingFiles(pattern));
  auto images = ImageFiles::Open(paths);
  if (absl::IsNotFound(images.status()) && paths.size() == 1) {
    return Annotate(images.status(),
                    "neither the name of a network nor an input");
  }
  ASSIGN_OR_RETURN(input.images, std::move(images));
  return input;
}

}  // namespace

absl::StatusOr<ClassifyInput> OpenInput(const ClassifyOptions& options) {
  // Where the default folder is missing, the error tells how to get it.
  const bool folder = IsFolder(options.input) ||
                      options.input == UserPath(FashionMnistFolder());
  ASSIGN_OR_RETURN(ClassifyInput input,
                   folder ? OpenFolder(options) : OpenFiles(options.input));
  const ImageFiles& images = *input.images;
  if (!options.labels.empty()) {
    ASSIGN_OR_RETURN(input.labels, ReadIdxLabels(options.labels));
    if (static_cast<int64_t>(input.labels.size()) != images.count()) {
      return absl::InvalidArgumentError(absl::StrCat(
          options.labels, " has ", input.labels.size(), " labels, expected ",
          images.count(), ", one for each image"));
    }
  }
  RETURN_IF_ERROR(Annotate(
      CheckImages(*options.model.network,
                  {images.count(), images.height(), images.width(), {}}),
      images.name()));
  if (options.size.value_or(1) > images.count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("size is ", *options.size, ", expected 1 to ",
                     images.count(), ", the images of the input"));
  }
  return input;
}

}  // namespace convlab
