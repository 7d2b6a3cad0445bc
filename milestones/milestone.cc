#include "milestones/milestone.h"

#include <cstdlib>

namespace convlab {
namespace {

constexpr Milestone kMilestones[] = {
    {"m1", "profile the baseline",
     "Runs the network with a framework's operators (cuDNN and cuBLAS on the "
     "GPU, Eigen's product on the CPU) and prints its accuracy.",
     /*baseline=*/true, /*ladder=*/false, Hardware::kGpuOrCpu, "im2col_eigen",
     ""},
    {"m2", "CPU convolution",
     "Runs the network with a convolution on the CPU, the course's nested "
     "loops "
     "unless --variant names another, and prints the time of each convolution "
     "and the share of correct answers.",
     /*baseline=*/false, /*ladder=*/false, Hardware::kCpu, "naive", ""},
    {"m3", "GPU convolution",
     "Runs the network with the textbook's convolution on the GPU and prints "
     "the time of each convolution and the share of correct answers.",
     /*baseline=*/false, /*ladder=*/false, Hardware::kGpu, "naive_parallel",
     "naive"},
    {"m4", "the ladder of optimizations",
     "Runs the network with every variant that supports it, verified first and "
     "then timed, and prints a table; with --variant runs that one alone.",
     /*baseline=*/false, /*ladder=*/true, Hardware::kGpu, "naive_parallel",
     "naive"},
    {"final", "the fastest convolution",
     "Runs the network with the fastest convolution for each layer and prints "
     "the time of each convolution and the share of correct answers.",
     /*baseline=*/false, /*ladder=*/false, Hardware::kGpuOrCpu, "", ""},
};

}  // namespace

bool IsMilestone(absl::string_view name) {
  for (const Milestone& milestone : kMilestones) {
    if (milestone.name == name) return true;
  }
  return false;
}

const Milestone& FindMilestone(absl::string_view name) {
  for (const Milestone& milestone : kMilestones) {
    if (milestone.name == name) return milestone;
  }
  std::abort();  // the table lacks a program's milestone
}

}  // namespace convlab
