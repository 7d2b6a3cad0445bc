#include "kernels/judge/source/compile.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/files/files.h"
#include "common/program/program.h"
#include "common/status/status.h"
#include "kernels/judge/source/diagnostics.h"
#include "kernels/judge/source/library_file.h"
#include "kernels/judge/source/unit.h"

namespace convlab {
namespace {

namespace fs = std::filesystem;

// A file whose templates never end must end too.
constexpr double kMaxSeconds = 120;

// Where there is no GPU to ask: its code runs on all from it on, and it has
// asynchronous copies and tf32.
constexpr int kDefaultCapability = 80;

// With them ld names the line of what is undefined. It reads a line of an
// included file as one of the main file in version 5 of the format.
constexpr const char* kLineTables[] = {"-g1", "-gdwarf-4"};

// The lines of a status that carries several errors.
constexpr char kErrorsPayload[] = "convlab/compiler-errors";
constexpr size_t kMostErrors = 5;

std::string Variable(const char* name) {
  const char* const value = getenv(name);
  return value == nullptr ? "" : value;
}

// The first of the places that is a program; Unavailable names them all.
absl::StatusOr<std::string> Locate(const std::string& name,
                                   const std::vector<std::string>& places) {
  std::string path = FindProgram(places);
  if (!path.empty()) return path;
  return absl::UnavailableError(absl::StrCat(name, " not found; looked for ",
                                             absl::StrJoin(places, ", ")));
}

// As Bazel finds it, and on the PATH.
absl::StatusOr<std::string> FindNvcc() {
  std::vector<std::string> paths;
  for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string folder = Variable(variable);
    if (folder == "none") {
      return absl::UnavailableError(
          absl::StrCat("nvcc not found: ", variable, " is none"));
    }
    if (!folder.empty()) paths.push_back(folder + "/bin/nvcc");
  }
  for (std::string& place : PlacesOnPath("nvcc")) {
    paths.push_back(std::move(place));
  }
  paths.emplace_back("/usr/local/cuda/bin/nvcc");
  paths.emplace_back("/opt/cuda/bin/nvcc");
  return Locate("nvcc", paths);
}

absl::StatusOr<std::string> FindHostCompiler() {
  return Locate("g++", PlacesOnPath("g++"));
}

// "90a": from Hopper on, the features of just this GPU have a name of their
// own.
std::string Arch(int compute_capability) {
  if (compute_capability == 0) return absl::StrCat(kDefaultCapability);
  return absl::StrCat(compute_capability, compute_capability >= 90 ? "a" : "");
}

// nvcc's -arch=sm_90a would compile twice, for PTX of compute_90 too.
std::string GenerateCode(int compute_capability) {
  const std::string arch = Arch(compute_capability);
  return compute_capability == 0
             ? absl::StrCat("--generate-code=arch=compute_", arch, ",code=[sm_",
                            arch, ",compute_", arch, "]")
             : absl::StrCat("--generate-code=arch=compute_", arch, ",code=sm_",
                            arch);
}

absl::StatusOr<std::vector<std::string>> GpuCommand(const Unit& unit,
                                                    int compute_capability) {
  ASSIGN_OR_RETURN(const std::string nvcc, FindNvcc());
  std::vector<std::string> command = {nvcc,
                                      "-shared",
                                      "-Xcompiler",
                                      "-fPIC",
                                      "-O3",
                                      "-std=c++17",
                                      "-Xptxas",
                                      "-v",
                                      "-lineinfo",
                                      "--extended-lambda",
                                      "--expt-relaxed-constexpr"};
  for (const char* const option : kLineTables) {
    command.emplace_back("-Xcompiler");
    command.emplace_back(option);
  }
  command.push_back(GenerateCode(compute_capability));
  // The guard takes the place of these (shims/convlab/guard.h). The library
  // holds a runtime of its own and shows none of it.
  for (const char* const option :
       {"--wrap=cudaMalloc", "--wrap=cudaFree", "--wrap=cudaMallocManaged",
        "--wrap=cudaMallocAsync", "--wrap=cudaFreeAsync", "--exclude-libs=ALL",
        "-Bsymbolic", "--no-undefined"}) {
    command.emplace_back("-Xlinker");
    command.emplace_back(option);
  }
  const std::string toolkit =
      fs::path(nvcc).parent_path().parent_path().string();
  for (const std::string& library : unit.libraries) {
    command.push_back("-l" + library);
    // There is no driver where there is no GPU.
    if (library == "cuda") command.push_back("-L" + toolkit + "/lib64/stubs");
    command.emplace_back("-Xlinker");
    command.push_back("-rpath=" + toolkit + "/lib64");
  }
  return command;
}

absl::StatusOr<std::vector<std::string>> CpuCommand() {
  ASSIGN_OR_RETURN(std::string compiler, FindHostCompiler());
  std::vector<std::string> command = {
      std::move(compiler), "-shared",       "-fPIC",    "-O3",
      "-std=c++17",        "-march=native", "-fopenmp", "-Wl,-Bsymbolic",
      "-Wl,--no-undefined"};
  command.insert(command.end(), std::begin(kLineTables), std::end(kLineTables));
  return command;
}

// A status with the first of the errors that also carries the others.
absl::Status Failure(std::vector<std::string> errors) {
  for (std::string& error : errors) error = OneLine(error);
  if (errors.size() == 1) return absl::InvalidArgumentError(errors[0]);
  absl::Status status = absl::InvalidArgumentError(
      absl::StrCat(errors[0], " (the first of ", errors.size(), " errors)"));
  if (errors.size() > kMostErrors) errors.resize(kMostErrors);
  status.SetPayload(kErrorsPayload, absl::Cord(absl::StrJoin(errors, "\n")));
  return status;
}

// What the compiler said, or its error.
absl::StatusOr<Diagnostics> RunCompiler(const std::vector<std::string>& command,
                                        const Unit& unit,
                                        const std::string& folder) {
  ProgramOptions options;
  options.folder = folder;
  options.seconds = kMaxSeconds;
  options.environment = {{"TMPDIR", folder}, {"LC_ALL", "C"}};
  const auto result = RunProgram(command, options);
  if (absl::IsDeadlineExceeded(result.status())) {
    return absl::InvalidArgumentError(absl::StrCat(
        unit.files[0].path, ": compiling took more than ", kMaxSeconds, " s"));
  }
  RETURN_IF_ERROR(result.status());
  std::vector<std::string> files;
  for (const KernelFile& file : unit.files) files.push_back(file.path);
  Diagnostics diagnostics = ReadDiagnostics(result->output, files);
  if (result->exit_status == 0) return diagnostics;
  if (diagnostics.errors.empty()) {
    const std::vector<std::string> lines =
        absl::StrSplit(absl::StripAsciiWhitespace(result->output), '\n');
    diagnostics.errors.push_back(
        absl::StrCat(fs::path(command[0]).filename().string(), " failed (",
                     result->exit_status, "): ", lines.back()));
  }
  return Failure(std::move(diagnostics.errors));
}

// The name of the library: readable, and another for each content and GPU.
std::string LibraryName(const KernelSource& source, int compute_capability) {
  std::string name;
  for (const char c : source.name) {
    name += absl::ascii_isalnum(c) || c == '-' || c == '_' ? c : '_';
  }
  absl::StrAppend(&name, "-", source.digest.substr(0, 12));
  if (UsesGpu(source.kernel_interface)) {
    absl::StrAppend(&name, "-sm_", Arch(compute_capability));
  }
  return name + ".so";
}

}  // namespace

absl::StatusOr<CompiledKernel> CompileKernel(const KernelSource& source,
                                             const CompileOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  CompiledKernel kernel;
  kernel.source = source;
  if (source.kernel_interface == KernelInterface::kLibrary) {
    RETURN_IF_ERROR(Annotate(CheckKernelLibrary(source.content), source.path));
    kernel.library = source.path;
    return kernel;
  }
  ASSIGN_OR_RETURN(const TemporaryFolder temporary,
                   TemporaryFolder::Create(options.folder));
  ASSIGN_OR_RETURN(const Unit unit, WriteUnit(source, temporary.path()));
  std::vector<std::string> command;
  if (UsesGpu(source.kernel_interface)) {
    ASSIGN_OR_RETURN(command, GpuCommand(unit, options.compute_capability));
  } else {
    ASSIGN_OR_RETURN(command, CpuCommand());
  }
  const std::string output = temporary.path() + "/kernel.so";
  command.insert(command.end(), {"-o", output, unit.path});
  for (const std::string& folder : unit.include_folders) {
    command.push_back("-I" + folder);
  }
  ASSIGN_OR_RETURN(Diagnostics diagnostics,
                   RunCompiler(command, unit, temporary.path()));
  kernel.functions = std::move(diagnostics.functions);
  kernel.warnings = unit.notes;
  kernel.warnings.insert(kernel.warnings.end(), diagnostics.warnings.begin(),
                         diagnostics.warnings.end());
  if (kernel.warnings.size() > 10) kernel.warnings.resize(10);
  ASSIGN_OR_RETURN(const std::string library, ReadFile(output));
  const int64_t constant_bytes = ConstantBytes(library);
  for (DeviceFunction& function : kernel.functions) {
    function.constant_bytes = constant_bytes;
  }
  kernel.library = absl::StrCat(
      options.folder, "/", LibraryName(source, options.compute_capability));
  std::error_code error;
  fs::rename(output, kernel.library, error);
  if (error) {
    return absl::InternalError(
        absl::StrCat("cannot write ", kernel.library, ": ", error.message()));
  }
  kernel.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  return kernel;
}

std::vector<std::string> CompilerErrors(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrorsPayload);
  if (!payload) return {};
  return absl::StrSplit(std::string(*payload), '\n');
}

}  // namespace convlab
