#include "tools/rerun/handed_in.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/folder.h"
#include "common/record/run_record.h"

namespace convlab {
namespace {

namespace fs = std::filesystem;

// The entries of a folder, sorted; none if it cannot be read.
std::vector<fs::path> Entries(const fs::path& folder) {
  const auto names = NamesIn(folder.string());
  if (!names.ok()) return {};
  std::vector<fs::path> entries;
  for (const std::string& name : *names) entries.push_back(folder / name);
  return entries;
}

// The newest record in the folder, and the name of the kernel that it is of.
struct Newest {
  RunRecord record;
  std::string kernel;
};
std::optional<Newest> NewestRecord(const std::vector<fs::path>& files) {
  std::optional<Newest> newest;
  for (const fs::path& file : files) {
    if (file.extension() != ".json") continue;
    const absl::StatusOr<RunRecord> record = ReadRunRecord(file.string());
    if (!record.ok() || (newest && record->started <= newest->record.started)) {
      continue;
    }
    newest = Newest{*record, ""};
    for (const auto& [name, variant] : record->variants) {
      if (!IsContributed(variant)) continue;
      newest->kernel = variant.verification->kernel->name;
    }
  }
  return newest;
}

bool IsOfDevice(const fs::path& file, absl::string_view device) {
  const std::string ending = file.extension().string();
  if (ending == ".so") return true;
  return device == "gpu"
             ? ending == ".cu" || ending == ".cuh"
             : ending == ".cc" || ending == ".cpp" || ending == ".h";
}

HandedIn LookInto(const fs::path& folder, absl::string_view device) {
  HandedIn handed_in;
  handed_in.name = folder.filename().string();
  const std::vector<fs::path> files = Entries(folder);
  const std::optional<Newest> newest = NewestRecord(files);
  if (newest) handed_in.network = newest->record.network;
  std::vector<fs::path> kernels;
  for (const fs::path& file : files) {
    std::error_code error;
    const bool is_folder = fs::is_directory(file, error);
    const bool is_named =
        newest && !newest->kernel.empty() && file.stem() == newest->kernel;
    if (is_named && (is_folder || IsOfDevice(file, device))) {
      handed_in.kernel = file.string();
      return handed_in;
    }
    if (!is_folder && IsOfDevice(file, device)) kernels.push_back(file);
  }
  if (kernels.size() == 1) {
    handed_in.kernel = kernels[0].string();
  } else if (kernels.empty()) {
    handed_in.failure = absl::StrCat(
        "no kernel: expected a ",
        device == "gpu" ? ".cu, .cuh" : ".cc, .cpp, .h", " or .so file");
  } else {
    handed_in.failure = absl::StrCat(
        "several files may be the kernel, and no record names one: ",
        absl::StrJoin(kernels, ", ",
                      [](std::string* text, const fs::path& file) {
                        absl::StrAppend(text, file.filename().string());
                      }));
  }
  return handed_in;
}

}  // namespace

absl::StatusOr<std::vector<HandedIn>> FindHandedIn(const std::string& folder,
                                                   absl::string_view device) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return absl::NotFoundError(
        absl::StrCat(folder, " is no folder of participants' folders"));
  }
  std::vector<HandedIn> all;
  for (const fs::path& entry : Entries(folder)) {
    if (fs::is_directory(entry, error)) all.push_back(LookInto(entry, device));
  }
  if (all.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, " holds no folder of a participant"));
  }
  return all;
}

}  // namespace convlab
