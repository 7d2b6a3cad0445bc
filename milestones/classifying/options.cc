#include "milestones/classifying/options.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/dataset/fashion_mnist.h"
#include "common/dataset/image_files.h"
#include "common/files/files.h"
#include "common/flags/flags.h"
#include "common/status/status.h"
#include "gflags/gflags.h"

DEFINE_string(model, "fa19",
              "network to run, or an ONNX file with a network of such layers "
              "(FILE.onnx)");
DEFINE_string(input, "",
              "images to classify: a folder with Fashion-MNIST's IDX files, an "
              "IDX file, a pattern of such files ('part-*.idx'), which follow "
              "each other by their names, or - for one on standard input, "
              "gzipped or plain; if not given, CONVLAB_DATA's folder, or "
              "Debian's");
DEFINE_string(data, "", "the same as --input");
DEFINE_string(split, "t10k", "of a folder: t10k or train");
DEFINE_string(size, "",
              "images to classify, from the first; all of them if not given");
DEFINE_string(labels, "",
              "IDX file with the images' labels; a folder has its own");
DEFINE_string(weights, "",
              "weight file of the network: safetensors, MXNet .params or "
              "mini-dnn .bin; if not given, the trained weights, or those in "
              "FILE.onnx");
DEFINE_string(out, "",
              "file to write the label found for each image to, by its name as "
              ".idx, .csv or .npy");
DEFINE_bool(logits, false, "write the logits of all classes, not the label");
DEFINE_bool(resume, false,
            "go on where an earlier run with --resume left --out, if there was "
            "one: the answers so far are kept, with FILE.run beside them, "
            "which knows images and weights by digests");
DEFINE_string(record, "",
              "JSON file for what ran where: the devices, how they are linked, "
              "and each one's share");
DEFINE_bool(strict, false,
            "fail if the number of correct labels is not the one that the "
            "weight file states for a folder's images; also if not given, "
            "where the environment sets CI (--nostrict: never)");
DEFINE_string(
    read, "0",
    "under mpirun, who reads the images: 0, the rank that deals them, "
    "or each rank the pieces that it gets, from files that all see");
DEFINE_bool(plan, false,
            "print the plan: its stages, what is folded and fused, operations "
            "and bytes, and each stage's time beside its floor");
DEFINE_string(plan_svg, "", "SVG file to draw the plan in");
DEFINE_string(device, "auto", "auto, cpu or gpu");
DEFINE_string(gpus, "",
              "GPUs that take pieces of the images as they become free: a "
              "number, or all; one if not given");
DEFINE_int32(threads, 0, "threads of the CPU; all cores if not given");
DEFINE_int32(workers, 0,
             "on the CPU: networks that take pieces as GPUs do, and share the "
             "threads; one if not given");
DEFINE_int32(readers, 0,
             "threads that read the images of plain files for each GPU; if not "
             "given, as many as keep it busy from the page cache");
DEFINE_int32(tolerate, 0,
             "go on without so many devices or, under mpirun, ranks that fail, "
             "and give their pieces to others");
DEFINE_string(cpu_target, "auto",
              "vector instructions; auto takes the best that the processor "
              "has");

namespace convlab {
namespace {

// Sets the flags that the positional arguments stand for. A text that is
// neither a size nor the name of a network is an input.
absl::Status TakePositional(const ParsedFlags& parsed) {
  const std::string* model = nullptr;
  for (const std::string& text : parsed.positional) {
    const char* flag = "input";
    std::string* target = &FLAGS_input;
    if (LooksLikeSize(text) && text != "-") {
      flag = "size";
      target = &FLAGS_size;
    } else if (model == nullptr && NamesModel(text)) {
      flag = "model";
      target = &FLAGS_model;
      model = &text;
    }
    const bool taken = target != &FLAGS_model && !target->empty();
    if (text.empty() || taken || parsed.given.count(flag) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("unexpected argument '", text,
                       "', expected [MODEL] [INPUT] [SIZE], each once"));
    }
    *target = text;
  }
  return absl::OkStatus();
}

absl::Status ParseGpus(ClassifyOptions& options) {
  if (FLAGS_gpus.empty()) return absl::OkStatus();
  int count = kAllGpus;
  if (FLAGS_gpus != "all" &&
      (!absl::SimpleAtoi(FLAGS_gpus, &count) || count < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gpus is '", FLAGS_gpus, "', expected all or a number from 1"));
  }
  if (options.device == Device::kCpu) {
    return absl::InvalidArgumentError(
        "--gpus is given with --device cpu, expected one of them");
  }
  options.gpus = count;
  return absl::OkStatus();
}

absl::Status CheckFiles(const ClassifyOptions& options) {
  std::vector<NamedFile> outputs = {{"--out", options.out},
                                    {"--record", options.record},
                                    {"--plan_svg", options.plan_svg}};
  if (options.resume) {
    outputs.push_back({"--resume", RunStatePath(options.out)});
  }
  std::vector<NamedFile> inputs = {{"--labels", options.labels},
                                   {"--weights", options.weights},
                                   {"--model", options.model.onnx_file}};
  // What does not match is told when it is opened.
  if (const auto files = MatchingFiles(options.input); files.ok()) {
    for (const std::string& file : *files) inputs.push_back({"--input", file});
  }
  return CheckSeparate(outputs, inputs);
}

}  // namespace

absl::StatusOr<ClassifyOptions> ParseClassifyOptions(
    const std::vector<std::string>& args) {
  ASSIGN_OR_RETURN(const ParsedFlags parsed, ParseFlags(args, __FILE__));
  ClassifyOptions options;
  options.help = parsed.help;
  if (options.help) return options;
  RETURN_IF_ERROR(TakePositional(parsed));
  ASSIGN_OR_RETURN(options.model, FindModel(FLAGS_model));
  if (!FLAGS_data.empty()) {
    if (!FLAGS_input.empty()) {
      return absl::InvalidArgumentError(
          "--data and --input are both given, expected one of them");
    }
    FLAGS_input = FLAGS_data;
  }
  options.input =
      FLAGS_input == "-"
          ? FLAGS_input
          : UserPath(FLAGS_input.empty() ? FashionMnistFolder() : FLAGS_input);
  options.split = FLAGS_split;
  if (!FLAGS_size.empty()) {
    ASSIGN_OR_RETURN(options.size, ParseSize(FLAGS_size));
  }
  options.labels = UserPath(FLAGS_labels);
  options.weights = UserPath(FLAGS_weights);
  ASSIGN_OR_RETURN(options.device, ParseDevice(FLAGS_device));
  if (parsed.given.count("workers") > 0) {
    RETURN_IF_ERROR(CheckRange("workers", FLAGS_workers, 1, 1024));
    options.workers = FLAGS_workers;
  }
  RETURN_IF_ERROR(ParseGpus(options));
  if (parsed.given.count("readers") > 0) {
    RETURN_IF_ERROR(CheckRange("readers", FLAGS_readers, 1, 64));
    options.readers = FLAGS_readers;
  }
  RETURN_IF_ERROR(CheckRange("tolerate", FLAGS_tolerate, 0, 1000000));
  options.tolerate = FLAGS_tolerate;
  if (parsed.given.count("threads") > 0) {
    RETURN_IF_ERROR(CheckRange("threads", FLAGS_threads, 1, 1024));
    options.threads = FLAGS_threads;
  }
  options.cpu_target = FLAGS_cpu_target;
  options.out = UserPath(FLAGS_out);
  options.logits = FLAGS_logits;
  if (!options.out.empty()) {
    ASSIGN_OR_RETURN(options.format, FormatOf(options.out));
  } else if (options.logits) {
    return absl::InvalidArgumentError(
        "--logits says what --out writes, expected --out too");
  }
  options.resume = FLAGS_resume;
  if (options.resume && options.out.empty()) {
    return absl::InvalidArgumentError(
        "--resume goes on with --out, expected --out too");
  }
  if (FLAGS_read != "0" && FLAGS_read != "each") {
    return absl::InvalidArgumentError(
        absl::StrCat("--read is '", FLAGS_read, "', expected 0 or each"));
  }
  options.read_each = FLAGS_read == "each";
  options.record = UserPath(FLAGS_record);
  options.strict =
      parsed.given.count("strict") > 0 ? FLAGS_strict : StrictByDefault();
  options.plan = FLAGS_plan;
  options.plan_svg = UserPath(FLAGS_plan_svg);
  RETURN_IF_ERROR(CheckFiles(options));
  return options;
}

std::string ClassifyHelp() {
  return absl::StrCat(
      "classify: the network as a compiled whole\n",
      WrapText("Runs a network from bytes to labels as a whole: linear layers "
               "are folded into one, what follows them is fused, and no layer "
               "is timed alone. More images than memory holds are a stream. "
               "The labels are those that final finds layer by layer; images "
               "between whose two best classes float32 cannot decide are "
               "listed.",
               0, 0),
      "\n\nUsage: bazel run //milestones:classify -- [MODEL] [INPUT] [SIZE] "
      "[flags]\n\n",
      DescribeFlags(__FILE__),
      "\nExit status: 0 done, 1 failed, 2 wrong usage or input, 3 the hardware "
      "asked for\nis not there.\n");
}

}  // namespace convlab
