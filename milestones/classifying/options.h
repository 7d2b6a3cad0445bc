// The command line of classify: classify [MODEL] [INPUT] [SIZE] [--flags].
#ifndef MILESTONES_CLASSIFYING_OPTIONS_H_
#define MILESTONES_CLASSIFYING_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "milestones/arguments.h"
#include "milestones/classifying/answers_file.h"
#include "milestones/model.h"

namespace convlab {

inline constexpr int kAllGpus = -1;

struct ClassifyOptions {
  bool help = false;
  Model model;
  // A folder, a file, a pattern of files, or "-" for standard input.
  std::string input;
  std::string split;            // of a folder
  std::optional<int64_t> size;  // the first images; absent: all
  std::string labels;           // a file; empty: the folder's, or none
  std::string weights;          // a file; empty: the trained weights
  Device device = Device::kAuto;
  // The GPUs of this process, or kAllGpus; absent: one, if there is one.
  std::optional<int> gpus;
  int threads = 0;  // 0: as many as are there
  int workers = 0;  // on the CPU, which share the threads; 0: one
  int readers = 0;  // threads that read for a GPU; 0: as many as it needs
  std::string cpu_target;
  std::string out;  // a file; empty: none
  AnswersFormat format = AnswersFormat::kIdx;
  bool logits = false;
  bool strict = false;     // an unexpected number of right labels is a failure
  bool resume = false;     // go on where `out` ends
  int tolerate = 0;        // ranks that may be lost
  bool read_each = false;  // each rank reads the pieces that it gets
  std::string record;      // a file; empty: none
  bool plan = false;
  std::string plan_svg;  // a file; empty: none
};

// Parses and checks everything that can be checked without touching data or
// hardware; a network in an ONNX file is read. InvalidArgument says which
// argument is wrong and what was expected.
absl::StatusOr<ClassifyOptions> ParseClassifyOptions(
    const std::vector<std::string>& args);

// The text that --help prints.
std::string ClassifyHelp();

}  // namespace convlab

#endif  // MILESTONES_CLASSIFYING_OPTIONS_H_
