#include "milestones/milestone.h"

#include <cstdlib>

namespace convlab {
namespace {

constexpr Milestone kMilestones[] = {
    {"m1", "profile the baseline",
     "Runs the network with a framework's operators (Eigen on the CPU) and "
     "prints its accuracy.",
     /*baseline=*/true, Hardware::kGpuOrCpu, "im2col_eigen", ""},
    {"m2", "CPU convolution",
     "Runs the network with a convolution on the CPU and prints the time of "
     "each convolution and the share of correct answers.",
     /*baseline=*/false, Hardware::kCpu, "naive_parallel", ""},
    {"m3", "GPU convolution",
     "Runs the network with the textbook's convolution on the GPU and prints "
     "the time of each convolution and the share of correct answers.",
     /*baseline=*/false, Hardware::kGpu, "naive_parallel", "naive"},
    {"final", "the fastest convolution",
     "Runs the network with the fastest convolution for each layer and prints "
     "the time of each convolution and the share of correct answers.",
     /*baseline=*/false, Hardware::kGpuOrCpu, "im2col_eigen", "naive"},
};

}  // namespace

const Milestone& FindMilestone(absl::string_view name) {
  for (const Milestone& milestone : kMilestones) {
    if (milestone.name == name) return milestone;
  }
  std::abort();  // a program asked for a row that this table lacks
}

}  // namespace convlab
