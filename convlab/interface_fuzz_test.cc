// The C interface with any problem, options and buffers: what is valid runs and
// writes all of y and nothing else; what is not has an error with a message and
// writes nothing. The sanitizers see what it reads.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "convlab/include/convlab/convlab.h"
#include "tools/fuzz/seeds.h"

namespace convlab {
namespace {

void Require(bool property) {
  if (!property) std::abort();
}

// What an input holds, in this order; missing bytes are zero.
struct Case {
  convlab_problem problem;
  convlab_options options;
  uint8_t kernel;  // of kKernels
  // Which buffer is spoiled, and how; from kPrepared on with prepared weights.
  uint8_t spoiled;
};

constexpr int kPrepared = 128;

constexpr const char* kKernels[] = {nullptr, "general", "naive", "dense_lanes",
                                    "no_such"};

// Larger operations are not run: each would take the test's time.
constexpr double kMostElements = 1 << 14;
constexpr double kMostProducts = 1 << 20;

// Whether creating a plan may take long; sizes that are out of range do not.
bool IsLarge(const convlab_problem& p) {
  double input = 1, weights = 1, pad = 1;
  for (const int64_t size : {p.batch, p.channels, p.height, p.width}) {
    input *= static_cast<double>(size);
  }
  for (const int64_t size :
       {p.filters, p.channels, p.kernel_height, p.kernel_width}) {
    weights *= static_cast<double>(size);
  }
  pad = (static_cast<double>(p.height) + static_cast<double>(p.padding_top) +
         static_cast<double>(p.padding_bottom)) *
        (static_cast<double>(p.width) + static_cast<double>(p.padding_left) +
         static_cast<double>(p.padding_right)) *
        static_cast<double>(p.batch);
  const double products = pad * weights;
  return input > kMostElements || weights > kMostElements ||
         pad * static_cast<double>(p.channels) > kMostElements ||
         pad * static_cast<double>(p.filters) > kMostElements ||
         products > kMostProducts;
}

bool InRange(const convlab_problem& p) {
  for (const int64_t size : {p.batch, p.channels, p.height, p.width, p.filters,
                             p.kernel_height, p.kernel_width}) {
    if (size < 1 || size > INT32_MAX) return false;
  }
  for (const int64_t padding :
       {p.padding_top, p.padding_bottom, p.padding_left, p.padding_right}) {
    if (padding < 0 || padding > INT32_MAX) return false;
  }
  return true;
}

void RequireMessage(convlab_status status) {
  Require(status >= CONVLAB_INVALID_ARGUMENT && status <= CONVLAB_DEVICE_ERROR);
  Require(std::strlen(convlab_last_error()) > 20);
}

// Of each byte of y; the floats and halves of such bytes are negative.
constexpr unsigned char kPoison = 0xc5;

// A tensor of ones. Of its own size, so that the sanitizer knows its end.
std::vector<unsigned char> Ones(int64_t bytes, bool halves) {
  std::vector<unsigned char> ones(static_cast<size_t>(bytes), 0);
  for (size_t i = 0; i < ones.size(); i += halves ? 2 : 4) {
    if (halves) {
      ones[i + 1] = 0x3c;
    } else {
      ones[i + 2] = 0x80, ones[i + 3] = 0x3f;
    }
  }
  return ones;
}

// The weights, prepared into memory of their own size.
struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
std::unique_ptr<void, Free> Prepare(convlab_plan* plan,
                                    const unsigned char* weights) {
  convlab_info info = CONVLAB_INFO_INIT;
  Require(convlab_plan_query(plan, &info) == CONVLAB_OK);
  const auto bytes = static_cast<size_t>(info.prepared_bytes);
  void* memory = nullptr;
  Require(posix_memalign(&memory, 256, bytes) == 0);
  std::unique_ptr<void, Free> prepared(memory);
  RequireMessage(
      convlab_prepare_weights(plan, weights, memory, bytes - 1, nullptr));
  Require(convlab_prepare_weights(plan, weights, memory, bytes, nullptr) ==
          CONVLAB_OK);
  return prepared;
}

// A run with buffers of the plan's sizes, or with one that is spoiled.
void Run(convlab_plan* plan, const convlab_problem& problem, uint8_t spoiled) {
  convlab_info info = CONVLAB_INFO_INIT;
  Require(convlab_plan_query(plan, &info) == CONVLAB_OK);
  Require(info.output_height > 0 && info.output_width > 0);
  const bool halves = (problem.format & CONVLAB_HALF) != 0;
  Require(info.workspace_bytes == 0 &&
          info.accuracy == (halves ? CONVLAB_FP16 : CONVLAB_FP32));
  const int size = halves ? 2 : 4;
  const auto x = Ones(info.input_bytes, halves);
  const auto weights = Ones(info.weight_bytes, halves);
  const auto bias = Ones(problem.filters * size, halves);
  std::vector<unsigned char> y(static_cast<size_t>(info.output_bytes), kPoison);
  const unsigned char* arguments[] = {
      x.data(), weights.data(), problem.has_bias == 1 ? bias.data() : nullptr,
      y.data()};
  const auto prepared = Prepare(plan, weights.data());
  const bool by_prepared = spoiled >= kPrepared;
  if (by_prepared) {
    arguments[1] = static_cast<const unsigned char*>(prepared.get());
  }
  bool wrong = false;
  if (const int which = spoiled % 8; which < 4) {
    if (arguments[which] != nullptr) {
      wrong = true;
      switch (spoiled / 8 % 3) {
        case 0:
          arguments[which] = nullptr;
          break;
        case 1:
          arguments[which] += 1;
          break;
        default:  // the output, as an input
          wrong = which != 3;
          arguments[which] = y.data() + y.size() - size;
          if (which == 3) arguments[which] = y.data();
      }
    } else {  // a bias that the problem has not
      arguments[which] = bias.data();
      wrong = true;
    }
  }
  const auto run = by_prepared ? convlab_run_prepared : convlab_run;
  const convlab_status status =
      run(plan, arguments[0], arguments[1], arguments[2],
          const_cast<unsigned char*>(arguments[3]), nullptr, 0, nullptr);
  Require((status == CONVLAB_OK) == !wrong);
  if (wrong) RequireMessage(status);
  // Sums of ones and zeros are not negative, and tanh of one is not, either.
  for (size_t i = 0; i < y.size(); i += size) {
    Require(wrong ? y[i] == kPoison : (y[i + size - 1] & 0x80) == 0);
  }
}

std::string Seed(const convlab_problem& problem, int kernel) {
  Case seed = {problem, CONVLAB_OPTIONS_INIT, static_cast<uint8_t>(kernel), 7};
  if (kernel % 2 == 1) seed.spoiled += kPrepared;
  seed.options.threads = 1;
  if ((problem.format & CONVLAB_HALF) != 0) {
    seed.options.accuracy = CONVLAB_FP16;
  }
  return std::string(reinterpret_cast<const char*>(&seed), sizeof(seed));
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  convlab_problem plain = CONVLAB_PROBLEM_INIT;
  plain.batch = 2, plain.channels = 3, plain.height = 9, plain.width = 21;
  plain.filters = 5, plain.kernel_height = plain.kernel_width = 3;
  convlab_problem all = plain;
  all.kernel_width = 5, all.stride_height = 2, all.stride_width = 3;
  all.padding_top = 1, all.padding_left = 4, all.padding_right = 2;
  all.has_bias = 1, all.activation = CONVLAB_TANH;
  all.pool_size = 2, all.pool_stride = 1, all.pool_ceil = 1;
  std::vector<std::string> seeds;
  for (int kernel = 0; kernel < 5; ++kernel) {
    seeds.push_back(Seed(plain, kernel));
    seeds.push_back(Seed(all, kernel));
    convlab_problem halves = all;
    halves.format = CONVLAB_HALF + (kernel % 2 == 0 ? CONVLAB_NHWC : 0);
    seeds.push_back(Seed(halves, kernel));
  }
  return seeds;
}

}  // namespace convlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace convlab;
  Case input = {};
  if (size > 0) {
    std::memcpy(&input, data, size < sizeof(input) ? size : sizeof(input));
  }
  // The caller's thread alone, and a name of a table.
  if (input.options.threads >= 0) input.options.threads = 1;
  input.options.kernel = kKernels[input.kernel % 5];
  if (InRange(input.problem) && IsLarge(input.problem)) return 0;
  convlab_plan* plan = nullptr;
  const convlab_status status =
      convlab_plan_create(&input.problem, &input.options, &plan);
  Require((status == CONVLAB_OK) == (plan != nullptr));
  if (status == CONVLAB_OK) {
    Run(plan, input.problem, input.spoiled);
  } else {
    RequireMessage(status);
  }
  convlab_plan_destroy(plan);
  return 0;
}
