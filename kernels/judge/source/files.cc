#include "kernels/judge/source/files.h"

#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files/files.h"
#include "common/status/status.h"

namespace convlab {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFiles = 64;
constexpr size_t kMaxBytes = 4 << 20;

// A folder of a build tree may hold a device or a pipe: only files are read.
bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool HasTensor(const Function& function) {
  return !function.parameters.empty() &&
         absl::StrContains(function.parameters[0].type, "Tensor<") &&
         absl::StrContains(function.parameters[0].type, ",4,");
}

bool OnHost(const Function& function) {
  return !absl::StrContains(function.before, "__global__") &&
         !absl::StrContains(function.before, "__device__");
}

}  // namespace

absl::StatusOr<std::string> ReadText(const std::string& path) {
  ASSIGN_OR_RETURN(FileReader reader, FileReader::Open(path));
  if (reader.size() > int64_t{kMaxBytes}) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", reader.size(),
                     " bytes; expected the source of a kernel"));
  }
  ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxBytes));
  if (text.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not text; expected C++ or CUDA source"));
  }
  absl::string_view view = text;
  absl::ConsumePrefix(&view, "\xEF\xBB\xBF");
  if (view.find_first_not_of(" \t\r\n") == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is empty"));
  }
  return std::string(view);
}

std::string IncludedPath(const KernelFile& file, const Include& include) {
  return (fs::path(file.relative).parent_path() / include.name)
      .lexically_normal()
      .string();
}

absl::StatusOr<std::vector<KernelFile>> FilesOfKernel(
    const std::string& path, const std::string& content) {
  const fs::path folder = fs::path(path).parent_path();
  std::vector<KernelFile> files;
  files.push_back({path, fs::path(path).filename().string(), content});
  std::set<std::string> seen = {path};
  // Adds a file unless it is there already.
  const auto add = [&](const std::string& relative,
                       bool of_header) -> absl::Status {
    const fs::path file = (folder / relative).lexically_normal();
    if (!IsFile(file)) return absl::OkStatus();
    if (!seen.insert(file.string()).second) {
      for (KernelFile& known : files) {
        if (known.path == file) known.of_header &= of_header;
      }
      return absl::OkStatus();
    }
    if (files.size() == kMaxFiles) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " includes more than ", kMaxFiles - 1, " files"));
    }
    ASSIGN_OR_RETURN(std::string text, ReadText(file.string()));
    files.push_back({file.string(), relative, std::move(text), of_header});
    return absl::OkStatus();
  };
  for (size_t i = 0; i < files.size(); ++i) {
    for (const Include& include : Includes(files[i].content)) {
      const std::string relative = IncludedPath(files[i], include);
      if (fs::path(include.name).is_absolute()) continue;
      RETURN_IF_ERROR(add(relative, false));
      if (fs::path(relative).extension().string().rfind(".h", 0) != 0) continue;
      for (const char* const ending : {".cu", ".cc", ".cpp"}) {
        const std::string source =
            fs::path(relative).replace_extension(ending).string();
        const auto text = ReadText((folder / source).string());
        if (!IsFile(folder / relative) || !text.ok()) continue;
        if (!FindInterface(ReadSource(*text)).empty()) continue;
        RETURN_IF_ERROR(add(source, true));
      }
    }
  }
  return files;
}

InterfaceFunctions FindInterface(const SourceText& source) {
  InterfaceFunctions found;
  const bool own_class = source.HasClass("GPUInterface");
  std::vector<Function> in_a_block;  // perhaps within extern "C" { ... }
  for (const Function& function : source.functions) {
    if (!function.definition || !OnHost(function)) continue;
    if (function.scope == "GPUInterface" ||
        (own_class && function.scope.empty() &&
         absl::StartsWith(function.name, "conv_forward_gpu"))) {
      found.mini_dnn.push_back(function);
    } else if (function.name == "conv_forward_cpu") {
      found.cpu.push_back(function);
    } else if (function.name == "forward" && HasTensor(function)) {
      found.mxnet.push_back(function);
    } else if (function.name == "convolution" && function.scope.empty()) {
      const bool is_extern = absl::StartsWith(function.before, "extern");
      (is_extern ? found.plain : in_a_block).push_back(function);
    }
  }
  // Other files may have helpers of this name.
  if (found.empty()) found.plain = in_a_block;
  return found;
}

}  // namespace convlab
