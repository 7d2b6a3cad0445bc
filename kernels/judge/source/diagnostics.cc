#include "kernels/judge/source/diagnostics.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace convlab {
namespace {

constexpr size_t kMaxWarnings = 10;
constexpr size_t kMaxMessage = 300;

// Constructs that a toolkit dropped: a piece of its error, and what to write.
constexpr std::pair<const char*, const char*> kHints[] = {
    {"texture",
     "CUDA 12 removed texture references; create a texture object "
     "with cudaCreateTextureObject, or read by __ldg"},
    {"cudaBindTexture",
     "CUDA 12 removed texture references; create a texture "
     "object with cudaCreateTextureObject"},
    {"clockRate",
     "CUDA 13 removed it; ask cudaDeviceGetAttribute for "
     "cudaDevAttrClockRate"},
    {"memoryClockRate",
     "CUDA 13 removed it; ask cudaDeviceGetAttribute for "
     "cudaDevAttrMemoryClockRate"},
    {"computeMode",
     "CUDA 13 removed it; ask cudaDeviceGetAttribute for "
     "cudaDevAttrComputeMode"},
    {"kernelExecTimeoutEnabled",
     "CUDA 13 removed it; ask "
     "cudaDeviceGetAttribute for "
     "cudaDevAttrKernelExecTimeout"},
    {"too much shared data",
     "declare it dynamic, as much as "
     "cudaFuncSetAttribute allows on this GPU"},
};

struct Message {
  std::string file;
  int line = 0;
  bool error = false;
  std::string text;
};

// Reads "file(12)", "file:12" or "file:12:5".
bool ParsePlace(absl::string_view place, Message* message) {
  const bool brackets = absl::ConsumeSuffix(&place, ")");
  // Of two numbers the second is the column.
  for (int numbers = 0; numbers < 2; ++numbers) {
    const size_t at = place.rfind(brackets ? '(' : ':');
    if (at == absl::string_view::npos ||
        !absl::SimpleAtoi(place.substr(at + 1), &message->line)) {
      return numbers > 0;
    }
    place = place.substr(0, at);
    message->file = std::string(place);
  }
  return true;
}

// Reads a message of nvcc, "file(12): error #20: text", or of g++,
// "file:12:5: error: text".
std::optional<Message> ParseMessage(absl::string_view line) {
  for (const bool error : {true, false}) {
    const absl::string_view mark = error ? "error" : "warning";
    for (size_t at = line.find(mark); at != absl::string_view::npos;
         at = line.find(mark, at + 1)) {
      // Before it: a place, "file(12): " or "file:12:5: ".
      absl::string_view place = line.substr(0, at);
      absl::ConsumeSuffix(&place, "fatal ");
      absl::ConsumeSuffix(&place, "catastrophic ");
      if (!absl::ConsumeSuffix(&place, ": ")) continue;
      // Behind it: a number that only the compiler understands, and the text.
      absl::string_view text = line.substr(at + mark.size());
      const size_t colon = text.find(": ");
      if (colon == absl::string_view::npos) continue;
      if (colon > 0 && !absl::StartsWith(text, " #")) continue;
      Message message;
      message.error = error;
      message.text = std::string(text.substr(colon + 2));
      if (ParsePlace(place, &message)) return message;
    }
  }
  return std::nullopt;
}

// "file.cu:12" if the line names a place in one of the owner's files.
std::string PlaceIn(const std::string& line,
                    const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const size_t at = line.find(file);
    if (at == std::string::npos) continue;
    absl::string_view rest = absl::string_view(line).substr(at + file.size());
    // "file:12:", "file(12)", or nvcc's "at line 12 of "file"".
    int number = 0;
    const size_t end = rest.find_first_not_of("0123456789", 1);
    if (!absl::SimpleAtoi(rest.substr(0, end).substr(rest.empty() ? 0 : 1),
                          &number)) {
      const size_t before = line.rfind("line ", at);
      if (before == std::string::npos) continue;
      rest = absl::string_view(line).substr(before + 5);
      if (!absl::SimpleAtoi(rest.substr(0, rest.find(' ')), &number)) continue;
    }
    return absl::StrCat(std::filesystem::path(file).filename().string(), ":",
                        number);
  }
  return "";
}

std::string WithHint(std::string text) {
  if (text.size() > kMaxMessage) text = text.substr(0, kMaxMessage) + "...";
  for (const auto& [piece, hint] : kHints) {
    if (absl::StrContains(text, piece))
      return absl::StrCat(text, " (", hint, ")");
  }
  return text;
}

// The number before `unit` in a line such as "0 bytes stack frame, ...".
int64_t NumberBefore(absl::string_view line, absl::string_view unit) {
  const size_t at = line.find(unit);
  if (at == absl::string_view::npos) return 0;
  size_t begin = at;
  while (begin > 0 && absl::ascii_isdigit(line[begin - 1])) --begin;
  int64_t number = 0;
  return absl::SimpleAtoi(line.substr(begin, at - begin), &number) ? number : 0;
}

// What ptxas -v says.
class Functions {
 public:
  void Read(absl::string_view line) {
    if (absl::StrContains(line, "Compiling entry function '")) {
      const std::vector<std::string> parts = absl::StrSplit(line, '\'');
      DeviceFunction function;
      function.name = ShortFunctionName(parts[1]);
      functions_.push_back(function);
      own_ = true;
    } else if (absl::StrContains(line, "Function properties for ")) {
      // Those of a device function that was not inlined are not the entry's.
      const std::vector<std::string> parts = absl::StrSplit(line, ' ');
      own_ = !functions_.empty() &&
             ShortFunctionName(parts.back()) == functions_.back().name;
    }
    if (functions_.empty() || !own_) return;
    DeviceFunction& function = functions_.back();
    if (absl::StrContains(line, "bytes stack frame")) {
      function.stack_bytes = NumberBefore(line, " bytes stack frame");
      function.spill_store_bytes = NumberBefore(line, " bytes spill stores");
      function.spill_load_bytes = NumberBefore(line, " bytes spill loads");
    } else if (absl::StrContains(line, "Used ")) {
      function.registers = static_cast<int>(NumberBefore(line, " registers"));
      function.shared_bytes = NumberBefore(line, " bytes smem");
    }
  }

  std::vector<DeviceFunction> Take() { return std::move(functions_); }

 private:
  std::vector<DeviceFunction> functions_;
  bool own_ = false;
};

// Collects errors, wherever they were found.
class Errors {
 public:
  Errors(const std::vector<std::string>& lines,
         const std::vector<std::string>& files)
      : lines_(lines),
        files_(files),
        main_(std::filesystem::path(files[0]).filename().string()) {}

  std::vector<std::string> Take() {
    for (size_t i = 0; i < lines_.size(); ++i) Read(i);
    // An error of which no line is known follows from one that is told.
    if (unclosed_.empty() && told_.empty() && !elsewhere_.empty()) {
      told_.push_back(elsewhere_);
    }
    told_.insert(told_.begin(), unclosed_.begin(), unclosed_.end());
    return std::move(told_);
  }

 private:
  static void AddOnce(std::string error, std::vector<std::string>& errors) {
    // The host's and the device's pass say the same.
    if (std::find(errors.begin(), errors.end(), error) == errors.end()) {
      errors.push_back(std::move(error));
    }
  }

  void Read(size_t i) {
    const std::string& line = lines_[i];
    if (const auto message = ParseMessage(line); message && message->error) {
      return ReadMessage(i, *message);
    }
    // nvcc's, of what is still open where the adapter behind the file ends.
    constexpr absl::string_view kAtEnd = "At end of source: error: ";
    if (absl::StartsWith(line, kAtEnd)) {
      Message message;
      message.text = line.substr(kAtEnd.size());
      return ReadMessage(i, message);
    }
    // ptxas names no line, and ld names one only of what is undefined.
    for (const absl::string_view mark :
         {"ptxas error   : ", "ptxas fatal   : ", "undefined reference to ",
          "multiple definition of ", "nvcc fatal   : ", "nvlink error   : "}) {
      const size_t at = line.find(mark.data(), 0, mark.size());
      if (at == std::string::npos) continue;
      const bool tool = absl::EndsWith(mark, ": ");
      const std::string place = PlaceIn(line, files_);
      return AddOnce(
          absl::StrCat(place.empty() ? main_ : place, ": ",
                       WithHint(line.substr(at + (tool ? mark.size() : 0)))),
          told_);
    }
  }

  void ReadMessage(size_t i, const Message& message) {
    std::string place =
        PlaceIn(absl::StrCat(message.file, ":", message.line, ":"), files_);
    std::string text = WithHint(message.text);
    bool unclosed = false;
    // Of an error elsewhere, the lines that follow (instantiated from, or the
    // bracket that is open) or precede it (included from) name the owner's.
    for (size_t j = i + 1; place.empty() && j < lines_.size(); ++j) {
      if (const auto next = ParseMessage(lines_[j]); next && next->error) break;
      place = PlaceIn(lines_[j], files_);
      unclosed =
          !place.empty() && absl::StrContains(lines_[j], "to match this");
    }
    for (size_t j = i; place.empty() && j-- > 0 && i - j < 20;) {
      // What names another error's line says nothing of this one.
      if (const auto before = ParseMessage(lines_[j]);
          before && before->error) {
        break;
      }
      place = PlaceIn(lines_[j], files_);
    }
    if (unclosed) {
      AddOnce(absl::StrCat(place,
                           ": a bracket that is opened here is never closed, "
                           "or one inside it: ",
                           text),
              unclosed_);
    } else if (!place.empty()) {
      AddOnce(absl::StrCat(place, ": ", text), told_);
    } else if (elsewhere_.empty()) {
      // The adapter behind the file calls what was told from its text.
      elsewhere_ = absl::StrCat(main_, ": ", text,
                                "; perhaps a } is missing, or the kernel's "
                                "functions stand in an #if or a namespace that "
                                "hides them");
    }
  }

  const std::vector<std::string>& lines_;
  const std::vector<std::string>& files_;
  const std::string main_;
  std::vector<std::string> unclosed_;  // brackets
  std::vector<std::string> told_;
  std::string elsewhere_;
};

}  // namespace

std::string ShortFunctionName(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status),
      std::free);
  if (status != 0 || demangled == nullptr) return mangled;
  std::string name = demangled.get();
  // Parameters are the last brackets.
  if (!name.empty() && name.back() == ')') {
    int depth = 0;
    for (size_t i = name.size(); i-- > 0;) {
      if (name[i] == ')') ++depth;
      if (name[i] == '(' && --depth == 0) {
        name.resize(i);
        break;
      }
    }
  }
  // Only templates have a return type.
  absl::string_view view = name;
  absl::ConsumePrefix(&view, "void ");
  return std::string(view);
}

Diagnostics ReadDiagnostics(absl::string_view output,
                            const std::vector<std::string>& files) {
  const std::vector<std::string> lines = absl::StrSplit(output, '\n');
  Diagnostics diagnostics;
  diagnostics.errors = Errors(lines, files).Take();
  Functions functions;
  for (const std::string& line : lines) {
    functions.Read(line);
    std::string warning;
    const auto message = ParseMessage(line);
    if (message && !message->error) {
      const std::string place =
          PlaceIn(absl::StrCat(message->file, ":", message->line, ":"), files);
      if (!place.empty()) warning = absl::StrCat(place, ": ", message->text);
    } else if (absl::StartsWith(line, "ptxas warning")) {
      warning =
          absl::StrCat(std::filesystem::path(files[0]).filename().string(),
                       line.substr(std::string("ptxas warning ").size()));
    }
    // The host's and the device's pass say the same.
    auto& warnings = diagnostics.warnings;
    if (!warning.empty() && warnings.size() < kMaxWarnings &&
        std::find(warnings.begin(), warnings.end(), warning) ==
            warnings.end()) {
      warnings.push_back(std::move(warning));
    }
  }
  diagnostics.functions = functions.Take();
  return diagnostics;
}

}  // namespace convlab
