#include "kernels/judge/process/messages.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace convlab {

std::vector<std::string> ProcessArguments::Write() const {
  return {kProcessArgument,        library,
          absl::StrCat(gpu),       absl::StrCat(device),
          absl::StrCat(trace),     absl::StrCat(guard),
          absl::StrCat(filter),    absl::StrCat(threads),
          absl::StrCat(data_bytes)};
}

bool ProcessArguments::Read(int argc, char** argv) {
  if (argc != 10) return false;
  library = argv[2];
  return absl::SimpleAtob(argv[3], &gpu) &&
         absl::SimpleAtoi(argv[4], &device) &&
         absl::SimpleAtob(argv[5], &trace) &&
         absl::SimpleAtob(argv[6], &guard) &&
         absl::SimpleAtob(argv[7], &filter) &&
         absl::SimpleAtoi(argv[8], &threads) &&
         absl::SimpleAtoi(argv[9], &data_bytes);
}

}  // namespace convlab
