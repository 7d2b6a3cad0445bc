#include "kernels/judge/source/unit.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"
#include "kernels/judge/source/embedded_files.h"
#include "kernels/judge/source/source.h"

namespace convlab {
namespace {

namespace fs = std::filesystem;

// The headers of the course that files include by any path.
constexpr char kGpuHeader[] = "gpu-new-forward.h";
constexpr char kCpuHeader[] = "cpu-new-forward.h";
constexpr char kMatmul[] = "matmul.h";

// Headers of the toolkit's libraries, and what to link for them.
constexpr std::pair<const char*, const char*> kLibraries[] = {
    {"cublas_v2.h", "cublas"},  {"cublas.h", "cublas"},
    {"cublasLt.h", "cublasLt"}, {"cudnn.h", "cudnn"},
    {"cufft.h", "cufft"},       {"curand.h", "curand"},
    {"cusparse.h", "cusparse"}, {"nvrtc.h", "nvrtc"},
    {"cuda.h", "cuda"},
};

// What old CUDA had, what takes its place, and a note that says so.
struct OldName {
  const char* name;
  const char* replacement;  // see shims/convlab/old_cuda.h
  const char* note;
};
constexpr char kAllLanes[] = "is taken as its _sync form with all 32 lanes";
constexpr OldName kOldNames[] = {
    {"__shfl", "convlab__shfl", kAllLanes},
    {"__shfl_up", "convlab__shfl_up", kAllLanes},
    {"__shfl_down", "convlab__shfl_down", kAllLanes},
    {"__shfl_xor", "convlab__shfl_xor", kAllLanes},
    {"__any", "convlab__any", kAllLanes},
    {"__all", "convlab__all", kAllLanes},
    {"__ballot", "convlab__ballot", kAllLanes},
    {"deviceOverlap", "asyncEngineCount", "is taken as asyncEngineCount"},
};

const char* Adapter(KernelInterface kernel_interface) {
  switch (kernel_interface) {
    case KernelInterface::kMxnetGpu:
    case KernelInterface::kMxnetCpu:
      return "mxnet.h";
    case KernelInterface::kMiniDnnHost:
      return "mini_dnn_host.h";
    case KernelInterface::kMiniDnnGpu:
      return "mini_dnn_gpu.h";
    case KernelInterface::kMiniDnnCpu:
      return "mini_dnn_cpu.h";
    case KernelInterface::kPlainGpu:
      return "plain_gpu.h";
    case KernelInterface::kPlainCpu:
      return "plain_cpu.h";
    case KernelInterface::kLibrary:
      break;
  }
  return "";
}

absl::Status Write(const fs::path& path, const std::string& content) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  return file ? absl::OkStatus()
              : absl::InternalError(
                    absl::StrCat("cannot write ", path.string()));
}

// "const float*, int": equal if two functions have the same parameters.
std::string Types(const Function& function) {
  return absl::StrJoin(function.parameters, ",",
                       [](std::string* out, const Parameter& parameter) {
                         out->append(parameter.type);
                       });
}

// The function's declaration in a class or outside.
std::string Declaration(const Function& function) {
  return absl::StrCat(function.before, " ", function.name, "(",
                      absl::StrJoin(function.parameters, ", ",
                                    [](std::string* out, const Parameter& p) {
                                      out->append(p.text);
                                    }),
                      ");\n");
}

class UnitWriter {
 public:
  UnitWriter(const KernelSource& source, const std::string& folder)
      : source_(source), root_(folder) {}

  absl::StatusOr<Unit> Write() {
    ASSIGN_OR_RETURN(unit_.files, FilesOfKernel(source_.path, source_.content));
    for (const KernelFile& file : unit_.files) {
      texts_.push_back(ReadSource(file.content));
    }
    for (const EmbeddedFile& shim : Shims()) {
      RETURN_IF_ERROR(
          convlab::Write(root_ / "include" / shim.name, shim.content));
    }
    for (size_t i = 0; i < unit_.files.size(); ++i) {
      RETURN_IF_ERROR(WriteFile(i));
      RETURN_IF_ERROR(WriteShims(unit_.files[i]));
    }
    unit_.path = (root_ / (UsesGpu(source_.kernel_interface) ? "kernel.cu"
                                                             : "kernel.cc"))
                     .string();
    RETURN_IF_ERROR(convlab::Write(unit_.path, Main()));
    unit_.include_folders = {(root_ / "include").string(), base_.string()};
    return std::move(unit_);
  }

 private:
  // The course's header with the class, to match this file's own definitions:
  // published files leave out const, add __restrict__ or helpers.
  std::string GpuHeader() const {
    if (texts_[0].HasClass("GPUInterface")) return "";
    std::string text = "class GPUInterface {\n public:\n";
    std::set<std::string> declared;
    for (const Function& function : texts_[0].functions) {
      if (function.scope != "GPUInterface" || !function.definition) continue;
      if (declared.insert(absl::StrCat(function.name, Types(function)))
              .second) {
        absl::StrAppend(&text, Declaration(function));
      }
    }
    return text + "};\n";
  }

  std::string CpuHeader() const {
    for (const Function& function : texts_[0].functions) {
      if (function.name == "conv_forward_cpu" && function.definition) {
        return Declaration(function);
      }
    }
    return "";
  }

  // Whether the owner's header declares the class as the file defines it.
  bool Fits(const SourceText& header) const {
    if (!header.HasClass("GPUInterface")) return false;
    const auto& all = texts_[0].functions;
    return std::all_of(all.begin(), all.end(), [&](const Function& function) {
      return function.scope != "GPUInterface" || !function.definition ||
             std::any_of(header.functions.begin(), header.functions.end(),
                         [&](const Function& declared) {
                           return declared.name == function.name &&
                                  Types(declared) == Types(function);
                         });
    });
  }

  bool Defines(absl::string_view name) const {
    return std::any_of(
        texts_.begin(), texts_.end(), [&](const SourceText& text) {
          return std::any_of(text.functions.begin(), text.functions.end(),
                             [&](const Function& function) {
                               return function.definition &&
                                      function.name == name;
                             });
        });
  }

  // Whether the owner's file `i` gives way to the judge's of the same name.
  bool Replaced(size_t i) const {
    const std::string name = fs::path(unit_.files[i].path).filename().string();
    if (i == 0) return false;
    if (name == kGpuHeader) return !Fits(texts_[i]);
    return name == kMatmul && !Defines("matrixMultiplyShared");
  }

  absl::Status WriteFile(size_t i) {
    if (Replaced(i)) return WriteShim(unit_.files[i].relative);
    // A line end first, since #line names the line that follows.
    return convlab::Write(Copy(unit_.files[i].relative),
                          absl::StrCat("#line 1 \"", unit_.files[i].path,
                                       "\"\n", unit_.files[i].content, "\n"));
  }

  // Writes what an include of a header of the course is to find there.
  absl::Status WriteShim(const std::string& relative) {
    const std::string name = fs::path(relative).filename().string();
    std::string content = absl::StrCat("#include <", name, ">\n");
    if (name == kGpuHeader) content = GpuHeader();
    if (name == kCpuHeader) content = CpuHeader();
    return convlab::Write(Copy(relative),
                          absl::StrCat("#pragma once\n", content));
  }

  absl::Status WriteShims(const KernelFile& file) {
    for (const Include& include : Includes(file.content)) {
      const std::string name = fs::path(include.name).filename().string();
      for (const auto& [header, library] : kLibraries) {
        if (name == header && !Has(library)) {
          unit_.libraries.emplace_back(library);
        }
      }
      const std::string relative = IncludedPath(file, include);
      std::error_code error;
      if (fs::exists(Copy(relative), error) || IsOwners(relative)) continue;
      if (name == "wb.h") {
        return absl::InvalidArgumentError(absl::StrCat(
            file.path, ":", include.line,
            ": wb.h belongs to the course's labs; a kernel needs none of it, "
            "remove the #include and its wb... calls"));
      }
      if (name == kGpuHeader || name == kCpuHeader || name == kMatmul ||
          name == "gpu-utils.h") {
        RETURN_IF_ERROR(WriteShim(relative));
      }
    }
    return absl::OkStatus();
  }

  bool Has(const std::string& library) const {
    return std::find(unit_.libraries.begin(), unit_.libraries.end(), library) !=
           unit_.libraries.end();
  }

  bool IsOwners(const std::string& relative) const {
    return std::any_of(
        unit_.files.begin(), unit_.files.end(),
        [&](const KernelFile& file) { return file.relative == relative; });
  }

  // Where a file of the kernel's folder is copied to.
  fs::path Copy(const std::string& relative) const {
    return (base_ / relative).lexically_normal();
  }

  // Lines that give names of old CUDA the meaning of today's.
  std::string OldNames() {
    std::string text;
    for (const OldName& old : kOldNames) {
      for (const KernelFile& file : unit_.files) {
        const int line = LineOfUse(file, old.name);
        if (line == 0) continue;
        absl::StrAppend(&text, "#define ", old.name, " ", old.replacement,
                        "\n");
        unit_.notes.push_back(
            absl::StrCat(fs::path(file.path).filename().string(), ":", line,
                         ": ", old.name, " ", old.note));
        break;
      }
    }
    return text;
  }

  // The first line with the name outside comments, or 0.
  static int LineOfUse(const KernelFile& file, const std::string& name) {
    if (!absl::StrContains(file.content, name)) return 0;
    const std::string text = WithoutComments(file.content);
    for (size_t at = text.find(name); at != std::string::npos;
         at = text.find(name, at + 1)) {
      const auto is_word = [&](size_t i) {
        return i < text.size() &&
               (absl::ascii_isalnum(text[i]) || text[i] == '_');
      };
      if (!is_word(at + name.size()) && (at == 0 || !is_word(at - 1))) {
        return LineOf(text, at);
      }
    }
    return 0;
  }

  std::string Main() {
    const KernelInterface kernel_interface = source_.kernel_interface;
    const bool mxnet = TermOf(kernel_interface) == CourseTerm::kMxnet;
    std::string text = absl::StrCat("#define CONVLAB_INTERFACE_NAME \"",
                                    Name(kernel_interface), "\"\n");
    if (source_.stride) absl::StrAppend(&text, "#define CONVLAB_STRIDE\n");
    if (UsesGpu(kernel_interface)) {
      absl::StrAppend(&text, "#define CONVLAB_GPU\n");
      if (!Defines("matrixMultiplyShared")) {
        absl::StrAppend(&text, "#define CONVLAB_DEFINE_MATMUL\n");
      }
    }
    absl::StrAppend(&text, "#include \"convlab/arguments.h\"\n");
    if (UsesGpu(kernel_interface)) {
      absl::StrAppend(&text,
                      "#include \"convlab/guard.h\"\n"
                      "#include \"convlab/old_cuda.h\"\n");
    }
    if (mxnet) {
      absl::StrAppend(&text, "#include \"convlab/mxnet_prelude.h\"\n");
    }
    absl::StrAppend(&text, OldNames());
    for (size_t i = 0; i < unit_.files.size(); ++i) {
      if (i == 0 || unit_.files[i].of_header) {
        absl::StrAppend(&text, "#include \"",
                        Copy(unit_.files[i].relative).string(), "\"\n");
      }
    }
    absl::StrAppend(&text, "#include \"convlab/", Adapter(kernel_interface),
                    "\"\n");
    return text;
  }

  const KernelSource& source_;
  const fs::path root_;
  // The copy of the kernel's folder; deep enough for includes of "../../".
  const fs::path base_ = root_ / "files/1/2/3/4/5/6/7/8";
  Unit unit_;
  std::vector<SourceText> texts_;  // of unit_.files
};

}  // namespace

absl::StatusOr<Unit> WriteUnit(const KernelSource& source,
                               const std::string& folder) {
  return UnitWriter(source, folder).Write();
}

}  // namespace convlab
