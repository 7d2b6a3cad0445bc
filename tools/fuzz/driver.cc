// The main function of every fuzz target: calls LLVMFuzzerTestOneInput on a
// fixed number of inputs, each a mutation of one or two of the target's seeds.
// Input i depends on the seeds and on i alone, so any run can be repeated.
//
//   TARGET [--runs=N] [--first=I]   inputs I to I + N - 1; the first ones are
//                                   the seeds as they are
//   TARGET FILE... [--runs=N]       the content of each file; with --runs, the
//                                   inputs behind them
//
// The inputs run in a child process. If it dies, by a sanitizer or otherwise,
// the parent writes the input to a file and says how to run it again.

#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files/files.h"
#include "tools/fuzz/enlarge.h"
#include "tools/fuzz/seeds.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Read by the address sanitizer when it starts. No parser may ask for memory
// that an input of kLargestInput bytes does not justify.
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=64";
}

namespace convlab {
namespace {

// One of so many inputs is enlarged.
constexpr size_t kEnlargedEvery = 100;
// Of the processor's time, however busy the machine is.
constexpr int kMostSecondsPerInput = 10;

// A value at which lengths, counts and offsets often fail.
uint64_t InterestingInteger(Random& random, size_t input_size) {
  constexpr uint64_t kValues[] = {0,
                                  1,
                                  2,
                                  4,
                                  0x7f,
                                  0x80,
                                  0xff,
                                  0x100,
                                  0x7fff,
                                  0x8000,
                                  0xffff,
                                  0x10000,
                                  1 << 24,
                                  0x3fffffff,
                                  0x40000000,
                                  0x7fffffff,
                                  0x80000000,
                                  0xffffffff,
                                  uint64_t{1} << 32,
                                  uint64_t{1} << 61,
                                  uint64_t{1} << 62,
                                  ~uint64_t{0} >> 1,
                                  uint64_t{1} << 63,
                                  ~uint64_t{0}};
  const uint64_t near = random.Below(17) - 8;
  if (random.Below(4) == 0) return input_size + near;
  return kValues[random.Below(std::size(kValues))] +
         (random.Below(2) == 0 ? 0 : near);
}

void Mutate(const std::vector<std::string>& seeds, Random& random,
            std::string& input) {
  const size_t at = random.Below(input.size() + 1);
  const size_t left = input.size() - at;
  switch (random.Below(9)) {
    case 0:  // flip a bit
      if (left > 0) input[at] ^= static_cast<char>(1 << random.Below(8));
      break;
    case 1:  // another byte
      if (left > 0) input[at] = static_cast<char>(random.Next());
      break;
    case 2: {  // an integer of 1, 2, 4 or 8 bytes, in either byte order
      const size_t width = size_t{1} << random.Below(4);
      const uint64_t value = InterestingInteger(random, input.size());
      const bool big_endian = random.Below(2) == 0;
      for (size_t i = 0; i < std::min(width, left); ++i) {
        const size_t byte = big_endian ? width - 1 - i : i;
        input[at + i] = static_cast<char>(value >> 8 * byte);
      }
      break;
    }
    case 3: {  // another digit, for numbers in text
      const size_t digit = input.find_first_of("0123456789", at);
      if (digit != std::string::npos) {
        input[digit] = static_cast<char>('0' + random.Below(10));
      }
      break;
    }
    case 4:  // insert
      for (size_t i = random.Below(8) + 1; i > 0; --i) {
        input.insert(input.begin() + at, static_cast<char>(random.Next()));
      }
      break;
    case 5:  // delete
      input.erase(at, random.Below(16) + 1);
      break;
    case 6:  // truncate
      input.resize(at);
      break;
    case 7: {  // continue with a piece of another seed
      const std::string& other = seeds[random.Below(seeds.size())];
      input =
          input.substr(0, at) + other.substr(random.Below(other.size() + 1));
      break;
    }
    case 8: {  // repeat a range elsewhere
      const std::string range = input.substr(at, random.Below(64) + 1);
      input.insert(random.Below(input.size() + 1), range);
      break;
    }
  }
  if (input.size() > kLargestInput) input.resize(kLargestInput);
}

std::string Input(const std::vector<std::string>& seeds, uint64_t index) {
  if (index < seeds.size()) return seeds[index];
  Random random(index);
  std::string input = seeds[random.Below(seeds.size())];
  // Mostly a few mutations, since parsers accept little after many.
  for (size_t i = random.Below(random.Below(6) + 1) + 1; i > 0; --i) {
    Mutate(seeds, random, input);
  }
  if (random.Below(kEnlargedEvery) == 0) Enlarge(random, input);
  return input;
}

void RunOne(const std::string& input) {
  // A copy that ends where the input ends, so that reading beyond it is found.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

// Keeps the input that crashed the target: in the user's folder or, in a test,
// among the test's outputs, which outlive its sandbox.
void ReportInput(uint64_t index, const std::string& input) {
  const std::string name = absl::StrCat("crash-", index);
  std::string path = UserPath(name);
  std::string place = path;
  const char* outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  if (outputs != nullptr && path == name) {
    path = absl::StrCat(outputs, "/", name);
    place = absl::StrCat(name, " in test.outputs beside the test's log");
  }
  const absl::Status written = WriteFileAtomically(path, input);
  const char* target = std::getenv("TEST_TARGET");
  std::fprintf(stderr,
               "Input %llu (%zu bytes) failed; %s\n"
               "Run it again: bazel run %s -- --first=%llu --runs=1\n",
               static_cast<unsigned long long>(index), input.size(),
               written.ok() ? absl::StrCat("written to ", place).c_str()
                            : written.ToString().c_str(),
               target != nullptr ? target : "TARGET",
               static_cast<unsigned long long>(index));
}

int RunMany(uint64_t first, uint64_t runs) {
  const std::vector<std::string> seeds = FuzzSeeds();
  // The child's progress, which survives the child.
  void* const shared = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    std::perror("mmap");
    return 1;
  }
  volatile uint64_t* const current = static_cast<uint64_t*>(shared);
  const pid_t child = fork();
  if (child == 0) {
    for (uint64_t i = first; i < first + runs; ++i) {
      *current = i;
      const itimerval limit = {{}, {kMostSecondsPerInput, 0}};
      setitimer(ITIMER_PROF, &limit, nullptr);
      RunOne(Input(seeds, i));
    }
    *current = first + runs;
    std::exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    std::perror("fork");
    return 1;
  }
  if (status == 0) {
    std::printf("%llu inputs from %llu on: no failure\n",
                static_cast<unsigned long long>(runs),
                static_cast<unsigned long long>(first));
    return 0;
  }
  if (WIFSIGNALED(status)) {
    std::fprintf(stderr, "Stopped by signal %d (%s).\n", WTERMSIG(status),
                 WTERMSIG(status) == SIGPROF ? "an input took too long"
                                             : strsignal(WTERMSIG(status)));
  }
  if (*current == first + runs) {
    std::fprintf(stderr, "Failed after the last input, at exit.\n");
  } else {
    ReportInput(*current, Input(seeds, *current));
  }
  return 1;
}

int Main(int argc, char** argv) {
  uint64_t first = 0;
  uint64_t runs = 100000;
  bool files = false, many = false;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--first=")) {
      if (absl::SimpleAtoi(argument, &first)) continue;
    } else if (absl::ConsumePrefix(&argument, "--runs=")) {
      many = true;
      if (absl::SimpleAtoi(argument, &runs)) continue;
    } else if (!absl::StartsWith(argument, "-")) {
      const auto content = ReadFile(UserPath(argument));
      if (content.ok()) {
        RunOne(*content);
        files = true;
        continue;
      }
      std::fprintf(stderr, "%s\n", content.status().ToString().c_str());
      return 2;
    }
    std::fprintf(stderr,
                 "bad argument %s: expected --runs=N, --first=I or files\n",
                 argv[i]);
    return 2;
  }
  return files && !many ? 0 : RunMany(first, runs);
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) { return convlab::Main(argc, argv); }
