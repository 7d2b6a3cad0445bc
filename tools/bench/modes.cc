#include "tools/bench/modes.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace convlab {
namespace {

constexpr struct {
  BenchMode mode;
  const char* flag;  // null: none asks for it
} kModes[] = {
    {BenchMode::kTimes, nullptr},     {BenchMode::kAccuracy, "accuracy"},
    {BenchMode::kOnce, "once"},       {BenchMode::kNetwork, "network"},
    {BenchMode::kLibrary, "library"}, {BenchMode::kList, "list"}};

constexpr unsigned Bit(BenchMode mode) { return static_cast<unsigned>(mode); }
constexpr unsigned kTimes = Bit(BenchMode::kTimes);
constexpr unsigned kLayers =
    kTimes | Bit(BenchMode::kAccuracy) | Bit(BenchMode::kOnce);
constexpr unsigned kNetwork = Bit(BenchMode::kNetwork);
constexpr unsigned kTimed = kTimes | kNetwork | Bit(BenchMode::kLibrary);

// Every other flag, and the modes that read it.
constexpr struct {
  const char* flag;
  unsigned modes;
} kFlags[] = {
    {"layers", kLayers},
    {"variants", kLayers},
    {"neighbours", kTimes | Bit(BenchMode::kOnce)},
    {"batch", kLayers | kNetwork},
    {"class", kLayers | Bit(BenchMode::kList)},
    {"data", kTimes},
    {"device", kLayers | kTimed | Bit(BenchMode::kList)},
    {"json", kTimed | Bit(BenchMode::kAccuracy)},
    {"samples", kTimed},
    {"seconds", kTimed},
    {"peers", kTimes | Bit(BenchMode::kAccuracy) | kNetwork},
    {"threads", kLayers | kTimed},
    {"kernel", kTimes},
    {"gpus", kNetwork},
    {"weights", kNetwork},
    {"wide", kTimes | kNetwork},
    {"verbose", kTimes},
};

std::string NameOf(BenchMode mode) {
  for (const auto& [known, flag] : kModes) {
    if (known == mode && flag != nullptr) return absl::StrCat("--", flag);
  }
  return "times of layers";
}

bool AsksForAMode(const std::string& given) {
  for (const auto& [mode, flag] : kModes) {
    if (flag != nullptr && given == flag) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<BenchMode> ChooseBenchMode(const std::set<std::string>& on) {
  std::vector<std::string> names;
  BenchMode chosen = BenchMode::kTimes;
  for (const auto& [mode, flag] : kModes) {
    if (flag == nullptr || on.count(flag) == 0) continue;
    chosen = mode;
    names.push_back(NameOf(mode));
  }
  if (names.size() <= 1) return chosen;
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StrJoin(names, " and "), ": expected one of them"));
}

absl::Status CheckFlagsOf(BenchMode mode, const std::set<std::string>& given) {
  for (const std::string& name : given) {
    if (AsksForAMode(name)) continue;
    unsigned readers = 0;
    for (const auto& [flag, modes] : kFlags) {
      if (name == flag) readers = modes;
    }
    if ((readers & Bit(mode)) != 0) continue;
    std::vector<std::string> expected;
    for (const auto& known : kModes) {
      if ((readers & Bit(known.mode)) != 0) {
        expected.push_back(NameOf(known.mode));
      }
    }
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, " is for ", absl::StrJoin(expected, ", "),
                     ", but this run is for ", NameOf(mode)));
  }
  return absl::OkStatus();
}

}  // namespace convlab
