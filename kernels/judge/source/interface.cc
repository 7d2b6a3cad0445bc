#include "kernels/judge/source/interface.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/files.h"
#include "common/files/folder.h"
#include "common/hash/hash.h"
#include "common/status/status.h"
#include "kernels/judge/source/files.h"
#include "kernels/judge/source/source.h"

namespace convlab {
namespace {

namespace fs = std::filesystem;

constexpr char kExpected[] =
    "expected one of GPUInterface::conv_forward_gpu or conv_forward_cpu "
    "(mini-dnn), forward<gpu, float> or forward on mshadow tensors (MXNet), or "
    "extern \"C\" void convolution(x, k, y, B, C, H, W, M, K[, stream])";

// Of the course's functions.
constexpr int kSizes = 6;

absl::Status Unfit(const std::string& path, const Function& function,
                   absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ":", function.line, ": ", function.name, " has ",
      function.parameters.size(), " parameters; expected ", expected));
}

// InvalidArgument if the parameters from the one at `begin` on have the names
// in `expected`, but in another order: such a function compiles, and would get
// the filters for the outputs or the width for the height.
absl::Status CheckOrder(const std::string& path, const Function& function,
                        size_t begin,
                        const std::vector<absl::string_view>& expected) {
  std::vector<absl::string_view> names;
  for (size_t i = 0; i < expected.size(); ++i) {
    names.push_back(function.parameters[begin + i].name);
  }
  if (names == expected ||
      !std::is_permutation(names.begin(), names.end(), expected.begin())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ":", function.line, ": ", function.name, " takes ",
                   absl::StrJoin(names, ", "), "; expected ",
                   absl::StrJoin(expected, ", "), ", in this order"));
}

// Whether a function takes a stride: `pointers` pointers and the course's six
// sizes, or one more.
absl::StatusOr<bool> TakesStride(const std::string& path,
                                 const Function& function, int pointers) {
  const auto& parameters = function.parameters;
  const auto is_pointer = [](const Parameter& p) { return p.pointer; };
  const int count = static_cast<int>(parameters.size());
  const int leading = static_cast<int>(
      std::find_if_not(parameters.begin(), parameters.end(), is_pointer) -
      parameters.begin());
  const int all =
      std::count_if(parameters.begin(), parameters.end(), is_pointer);
  if (leading != pointers || all != pointers ||
      (count != pointers + kSizes && count != pointers + kSizes + 1)) {
    return Unfit(path, function,
                 absl::StrCat(pointers,
                              " pointers, then B, M, C, H, W, K and perhaps "
                              "the stride"));
  }
  RETURN_IF_ERROR(
      CheckOrder(path, function, pointers, {"B", "M", "C", "H", "W", "K"}));
  return count == pointers + kSizes + 1;
}

// The definition with this name, or null.
const Function* Named(const std::vector<Function>& functions,
                      absl::string_view name) {
  for (const Function& function : functions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

absl::Status TellMiniDnn(const std::vector<Function>& functions,
                         KernelSource* source) {
  const std::string& path = source->path;
  const Function* const op = Named(functions, "conv_forward_gpu");
  const Function* const prolog = Named(functions, "conv_forward_gpu_prolog");
  const Function* const epilog = Named(functions, "conv_forward_gpu_epilog");
  if (op == nullptr || (prolog == nullptr) != (epilog == nullptr)) {
    const char* const missing = op == nullptr       ? "conv_forward_gpu"
                                : prolog == nullptr ? "conv_forward_gpu_prolog"
                                                    : "conv_forward_gpu_epilog";
    return absl::InvalidArgumentError(absl::StrCat(
        path, " defines GPUInterface::", functions[0].name, " but not ",
        missing,
        "; expected conv_forward_gpu, alone or with both its prolog "
        "and its epilog"));
  }
  source->kernel_interface = prolog == nullptr ? KernelInterface::kMiniDnnHost
                                               : KernelInterface::kMiniDnnGpu;
  ASSIGN_OR_RETURN(source->stride, TakesStride(path, *op, 3));
  if (prolog == nullptr) return absl::OkStatus();
  for (const auto& [function, pointers] :
       {std::pair(prolog, 6), std::pair(epilog, 4)}) {
    ASSIGN_OR_RETURN(const bool stride, TakesStride(path, *function, pointers));
    if (stride != source->stride) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ":", function->line, ": of ", op->name, " and ", function->name,
          " one takes a stride and the other does not"));
    }
  }
  return absl::OkStatus();
}

absl::Status TellPlain(const Function& function, KernelSource* source) {
  const auto& parameters = function.parameters;
  const bool stream = !parameters.empty() &&
                      absl::StrContains(parameters.back().type, "cudaStream_t");
  const size_t expected = stream ? 10 : 9;
  const bool pointers = parameters.size() >= 3 && parameters[0].pointer &&
                        parameters[1].pointer && parameters[2].pointer;
  if (parameters.size() != expected || !pointers) {
    return Unfit(source->path, function,
                 "x, k, y, B, C, H, W, M, K and on the GPU a cudaStream_t");
  }
  RETURN_IF_ERROR(CheckOrder(source->path, function, 0, {"x", "k", "y"}));
  RETURN_IF_ERROR(
      CheckOrder(source->path, function, 3, {"B", "C", "H", "W", "M", "K"}));
  if (absl::StartsWith(parameters[2].type, "const ")) {
    return absl::InvalidArgumentError(absl::StrCat(
        source->path, ":", function.line, ": ", function.name, " has a const ",
        "third parameter; expected x, k, y, of which y is written"));
  }
  source->kernel_interface =
      stream ? KernelInterface::kPlainGpu : KernelInterface::kPlainCpu;
  return absl::OkStatus();
}

// Files for the GPU specialize the template, or at least launch kernels.
KernelInterface TellMxnet(const std::vector<Function>& functions,
                          const SourceText& text) {
  for (const Function& function : functions) {
    if (absl::StrContains(function.template_arguments, "gpu")) {
      return KernelInterface::kMxnetGpu;
    }
  }
  return text.launches ? KernelInterface::kMxnetGpu
                       : KernelInterface::kMxnetCpu;
}

// Tells the interface of source->content.
absl::Status Tell(KernelSource* source) {
  const SourceText text = ReadSource(source->content);
  const InterfaceFunctions found = FindInterface(text);
  std::vector<std::string> names;
  for (const auto* functions :
       {&found.mini_dnn, &found.cpu, &found.mxnet, &found.plain}) {
    if (functions->empty()) continue;
    const Function& first = functions->front();
    names.push_back(absl::StrCat(first.scope, first.scope.empty() ? "" : "::",
                                 first.name, " (line ", first.line, ")"));
  }
  if (names.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        source->path, " has several interfaces: ", absl::StrJoin(names, ", "),
        "; expected one in a file"));
  }
  if (!found.mini_dnn.empty()) return TellMiniDnn(found.mini_dnn, source);
  if (!found.plain.empty()) return TellPlain(found.plain[0], source);
  if (!found.mxnet.empty()) {
    source->kernel_interface = TellMxnet(found.mxnet, text);
    return absl::OkStatus();
  }
  if (!found.cpu.empty()) {
    source->kernel_interface = KernelInterface::kMiniDnnCpu;
    ASSIGN_OR_RETURN(source->stride,
                     TakesStride(source->path, found.cpu[0], 3));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(source->path, " has no kernel's interface; ", kExpected));
}

bool IsLibrary(const std::string& path) {
  auto reader = FileReader::Open(path);
  char magic[4];
  if (!reader.ok()) return false;
  const auto size = reader->Read(magic, sizeof(magic));
  return size.ok() && absl::string_view(magic, *size) ==
                          "\x7F"
                          "ELF";
}

absl::StatusOr<KernelSource> ReadSourceFile(const fs::path& path) {
  KernelSource source;
  source.name = path.stem().string();
  source.path = path.string();
  source.folder = path.parent_path().string();
  std::vector<KernelFile> files;
  if (IsLibrary(source.path)) {
    source.kernel_interface = KernelInterface::kLibrary;
    ASSIGN_OR_RETURN(source.content, ReadFile(source.path));
    files.push_back({source.path, path.filename().string(), source.content});
  } else {
    ASSIGN_OR_RETURN(source.content, ReadText(source.path));
    RETURN_IF_ERROR(Tell(&source));
    ASSIGN_OR_RETURN(files, FilesOfKernel(source.path, source.content));
  }
  std::string all;
  for (const KernelFile& file : files) all += file.content;
  source.digest = Sha256(all);
  return source;
}

bool IsSource(const fs::path& path) {
  const std::string ending = path.extension().string();
  for (const char* const known :
       {".cu", ".cuh", ".h", ".hpp", ".cc", ".cpp", ".cxx", ".so"}) {
    if (ending == known) return true;
  }
  return false;
}

absl::StatusOr<KernelSource> ReadFolder(const fs::path& folder) {
  std::vector<fs::path> paths;
  ASSIGN_OR_RETURN(const std::vector<std::string> found,
                   NamesIn(folder.string()));
  for (const std::string& name : found) {
    if (IsSource(folder / name)) paths.push_back(folder / name);
  }
  std::vector<fs::path> kernels;
  std::vector<std::string> names;
  for (const fs::path& path : paths) {
    bool kernel = IsLibrary(path.string());
    if (!kernel) {
      const auto text = ReadText(path.string());
      kernel = text.ok() && !FindInterface(ReadSource(*text)).empty();
    }
    if (!kernel) continue;
    kernels.push_back(path);
    names.push_back(path.filename().string());
  }
  if (kernels.size() != 1) {
    return absl::InvalidArgumentError(
        kernels.empty()
            ? absl::StrCat("no file in folder ", folder.string(),
                           " has a kernel's interface; ", kExpected)
            : absl::StrCat("folder ", folder.string(),
                           " has several kernels: ", absl::StrJoin(names, ", "),
                           "; expected one, or the name of the file"));
  }
  ASSIGN_OR_RETURN(KernelSource source, ReadSourceFile(kernels[0]));
  source.name = folder.filename().string();
  return source;
}

}  // namespace

absl::string_view Name(KernelInterface kernel_interface) {
  switch (kernel_interface) {
    case KernelInterface::kMxnetGpu:
      return "MXNet, GPU";
    case KernelInterface::kMxnetCpu:
      return "MXNet, CPU";
    case KernelInterface::kMiniDnnHost:
      return "mini-dnn, host tensors";
    case KernelInterface::kMiniDnnGpu:
      return "mini-dnn, prolog and epilog";
    case KernelInterface::kMiniDnnCpu:
      return "mini-dnn, CPU";
    case KernelInterface::kPlainGpu:
      return "plain, GPU";
    case KernelInterface::kPlainCpu:
      return "plain, CPU";
    case KernelInterface::kLibrary:
      return "library";
  }
  return "";
}

bool UsesGpu(KernelInterface kernel_interface) {
  return kernel_interface == KernelInterface::kMxnetGpu ||
         kernel_interface == KernelInterface::kMiniDnnHost ||
         kernel_interface == KernelInterface::kMiniDnnGpu ||
         kernel_interface == KernelInterface::kPlainGpu;
}

CourseTerm TermOf(KernelInterface kernel_interface) {
  switch (kernel_interface) {
    case KernelInterface::kMxnetGpu:
    case KernelInterface::kMxnetCpu:
      return CourseTerm::kMxnet;
    case KernelInterface::kMiniDnnHost:
    case KernelInterface::kMiniDnnGpu:
    case KernelInterface::kMiniDnnCpu:
      return CourseTerm::kMiniDnn;
    case KernelInterface::kPlainGpu:
    case KernelInterface::kPlainCpu:
    case KernelInterface::kLibrary:
      break;
  }
  return CourseTerm::kOwn;
}

absl::StatusOr<KernelSource> ReadKernelSource(const std::string& path) {
  std::error_code error;
  // A folder's name may end in a slash.
  fs::path absolute = fs::absolute(UserPath(path), error).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  const fs::file_status status = fs::status(absolute, error);
  if (!fs::exists(status)) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": no such file"));
  }
  if (fs::is_directory(status)) return ReadFolder(absolute);
  if (!fs::is_regular_file(status)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is neither a file nor a folder"));
  }
  return ReadSourceFile(absolute);
}

}  // namespace convlab
