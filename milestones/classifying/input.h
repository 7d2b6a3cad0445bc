// The images and the labels that classify is given.
#ifndef MILESTONES_CLASSIFYING_INPUT_H_
#define MILESTONES_CLASSIFYING_INPUT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/image_files.h"
#include "milestones/classifying/options.h"

namespace convlab {

struct ClassifyInput {
  std::unique_ptr<ImageFiles> images;
  std::vector<uint8_t> labels;  // of all of them; empty: unknown
};

// Opens the images, and reads the labels if there are any. The network must
// take the images, and there must be as many as the user wants.
absl::StatusOr<ClassifyInput> OpenInput(const ClassifyOptions& options);

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_INPUT_H_
