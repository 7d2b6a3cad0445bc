// Fashion-MNIST, or another data set in files of the same names: 28 x 28 grey
// images of ten kinds of clothes, 10,000 to test with and 60,000 to train with.
// Source: https://github.com/zalandoresearch/fashion-mnist.
#ifndef COMMON_DATASET_FASHION_MNIST_H_
#define COMMON_DATASET_FASHION_MNIST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/dataset/idx.h"

namespace convlab {

// The default folder: the environment variable CONVLAB_DATA if it is set,
// otherwise the folder of Debian's package dataset-fashion-mnist.
std::string FashionMnistFolder();

struct Dataset {
  ImageSet images;              // square, at least one
  std::vector<uint8_t> labels;  // one per image, 0 to 9
};

// Reads `folder`/`split`-images-idx3-ubyte.gz and -labels-idx1-ubyte.gz, or the
// same names without .gz. `split` is "t10k" or "train". Returns NotFound if the
// folder or a file is missing, and InvalidArgument for another split, a
// malformed file (idx.h), images that are not square, or counts that differ.
absl::StatusOr<Dataset> LoadFashionMnist(const std::string& folder,
                                         absl::string_view split);

// The same data set with its images as a stream, of which there may be more
// than memory holds. Errors that LoadFashionMnist finds in the images are found
// when they are read.
struct DatasetStream {
  std::unique_ptr<IdxImageStream> images;
  std::vector<uint8_t> labels;
};
absl::StatusOr<DatasetStream> OpenFashionMnist(const std::string& folder,
                                               absl::string_view split);

}  // namespace convlab

#endif  // COMMON_DATASET_FASHION_MNIST_H_
