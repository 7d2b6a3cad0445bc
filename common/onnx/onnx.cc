#include "common/onnx/onnx.h"

#include <climits>
#include <cstdlib>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files/files.h"
#include "common/onnx/sequence.h"
#include "common/status/status.h"
#include "google/protobuf/arena.h"
#include "onnx/onnx.pb.h"

namespace convlab {
namespace {

// Protobuf's own limit.
constexpr int64_t kMostBytes = INT_MAX;
// Of the operators: before, additions had another rule for shapes; after, they
// are not known.
constexpr int64_t kOldestOpset = 7, kNewestOpset = 23;

// What protobuf may still allocate for the message that this thread parses.
thread_local int64_t allowed_bytes = 0;

void* Allocate(size_t bytes) {
  allowed_bytes -= static_cast<int64_t>(bytes);
  void* const block = allowed_bytes < 0 ? nullptr : std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

google::protobuf::ArenaOptions BoundedArena(size_t content_bytes) {
  // Numbers take up to three times their bytes while a list of them grows.
  constexpr int64_t kTimes = 4, kAlways = 16 << 20;
  allowed_bytes = kAlways + kTimes * static_cast<int64_t>(content_bytes);
  google::protobuf::ArenaOptions options;
  options.block_alloc = &Allocate;
  options.block_dealloc = [](void* block, size_t) { std::free(block); };
  return options;
}

// Two bytes of a file may be an empty node, of which the message takes a
// hundred times as many.
absl::Status Parse(absl::string_view content, onnx::ModelProto& model) {
  try {
    if (model.ParseFromArray(content.data(),
                             static_cast<int>(content.size()))) {
      return absl::OkStatus();
    }
  } catch (const std::bad_alloc&) {
    return absl::InvalidArgumentError(
        "the file asks for far more memory than it has bytes");
  }
  return absl::InvalidArgumentError(
      "the file is damaged or cut off, or no ONNX model");
}

// The version of the standard operators.
absl::StatusOr<int64_t> OpsetOf(const onnx::ModelProto& model) {
  for (const auto& opset : model.opset_import()) {
    if (!opset.domain().empty() && opset.domain() != "ai.onnx") continue;
    if (opset.version() >= kOldestOpset && opset.version() <= kNewestOpset) {
      return opset.version();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the operators are of version ", opset.version(),
                     ", expected ", kOldestOpset, " to ", kNewestOpset));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the file does not say the operators' version, expected ",
                   kOldestOpset, " to ", kNewestOpset));
}

}  // namespace

absl::StatusOr<OnnxNetwork> ParseOnnx(absl::string_view content,
                                      const std::string& name) {
  if (content.size() > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the file has ", content.size(), " bytes, expected fewer than 2^31"));
  }
  google::protobuf::Arena arena(BoundedArena(content.size()));
  auto* const model =
      google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
  RETURN_IF_ERROR(Parse(content, *model));
  if (!model->has_graph()) {
    return absl::InvalidArgumentError("the file has no graph");
  }
  ASSIGN_OR_RETURN(const int64_t opset, OpsetOf(*model));
  ASSIGN_OR_RETURN(OnnxNetwork result, ReadSequence(model->graph(), opset));
  result.network.name = name;
  RETURN_IF_ERROR(CheckNetwork(result.network));
  RETURN_IF_ERROR(CheckWeights(result.network, result.weights));
  return result;
}

absl::StatusOr<OnnxNetwork> ReadOnnx(const std::string& path) {
  {
    // Before its content is.
    ASSIGN_OR_RETURN(const FileReader file, FileReader::Open(path));
    if (file.size() > kMostBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": the file has ", file.size(),
                       " bytes, expected fewer than 2^31"));
    }
  }
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  const std::string name = path.substr(path.rfind('/') + 1);
  absl::StatusOr<OnnxNetwork> result =
      ParseOnnx(content, std::string(absl::StripSuffix(name, ".onnx")));
  RETURN_IF_ERROR(Annotate(result.status(), path));
  return result;
}

}  // namespace convlab
