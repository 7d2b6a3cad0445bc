#include "common/ranks/binding.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>

#include "common/parallel/parallel.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using Environment = std::map<std::string, std::string>;

struct Found {
  int threads, left, cpus;
};

// What a process finds that is bound to one of this one's CPUs. It has this
// environment, as mpirun gives it to a rank.
Found InBoundProcess(const Environment& environment, int wanted = 0) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    cpu_set_t own, one;
    sched_getaffinity(0, sizeof(own), &own);
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; ++i) {
      if (CPU_ISSET(i, &own)) CPU_SET(i, &one);
    }
    sched_setaffinity(0, sizeof(one), &one);
    for (const auto& [name, value] : environment) {
      setenv(name.c_str(), value.c_str(), 1);
    }
    Found found = {};
    found.threads = ThreadsOfRank(wanted, &found.left);
    found.cpus = Workers::Available();
    _exit(write(ends[1], &found, sizeof(found)) == sizeof(found) ? 0 : 1);
  }
  close(ends[1]);
  Found found = {};
  EXPECT_EQ(read(ends[0], &found, sizeof(found)),
            static_cast<ssize_t>(sizeof(found)));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return found;
}

class ThreadsOfRankTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (all_ < 2) GTEST_SKIP() << "there is one CPU";
  }
  const int all_ = Workers::Available();
  const Environment bound_ = {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"OMPI_MCA_orte_bound_at_launch", "1"}};
};

TEST_F(ThreadsOfRankTest, RanksLeaveMpirunsBindingAndShareItsCpus) {
  const Found found = InBoundProcess(bound_);
  EXPECT_EQ(found.threads, all_ / 2);
  EXPECT_EQ(found.left, 1);
  EXPECT_EQ(found.cpus, all_);
  // More ranks than CPUs.
  Environment many = bound_;
  many["OMPI_COMM_WORLD_LOCAL_SIZE"] = "100000";
  EXPECT_EQ(InBoundProcess(many).threads, 1);
}

TEST_F(ThreadsOfRankTest, WhatTheUserChoseStays) {
  const Environment chosen = {
      {"OMPI_MCA_hwloc_base_binding_policy", "core"},
      {"OMPI_MCA_hwloc_base_cpu_set", "0"},
      {"OMPI_MCA_rmaps_base_cpus_per_rank", "1"},
      {"OMPI_MCA_orte_rankfile", "ranks"},
      {"OMPI_MCA_rmaps_base_mapping_policy", "core:PE=1"}};
  for (const auto& variable : chosen) {
    Environment environment = bound_;
    environment.insert(variable);
    const Found found = InBoundProcess(environment);
    EXPECT_EQ(found.threads, 1) << variable.first;
    EXPECT_EQ(found.left, 0) << variable.first;
    EXPECT_EQ(found.cpus, 1) << variable.first;
  }
  // Where ranks go is no choice of CPUs.
  Environment environment = bound_;
  environment["OMPI_MCA_rmaps_base_mapping_policy"] = "node";
  EXPECT_EQ(InBoundProcess(environment).left, 1);
}

TEST_F(ThreadsOfRankTest, OneThreadNeedsOneCpu) {
  const Found one = InBoundProcess(bound_, 1);
  EXPECT_EQ(one.threads, 1);
  EXPECT_EQ(one.cpus, 1);
  const Found two = InBoundProcess(bound_, 2);
  EXPECT_EQ(two.threads, 2);
  EXPECT_EQ(two.cpus, all_);
}

TEST_F(ThreadsOfRankTest, OtherProcessesKeepTheirCpus) {
  EXPECT_EQ(InBoundProcess({}).cpus, 1);
  // As srun binds.
  const Found found = InBoundProcess({{"SLURM_NTASKS", "2"}});
  EXPECT_EQ(found.threads, 1);
  EXPECT_EQ(found.cpus, 1);
  // Ranks that are not bound share the CPUs, too.
  int left = 0;
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
  EXPECT_EQ(ThreadsOfRank(0, &left), all_ / 2);
  unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  EXPECT_EQ(ThreadsOfRank(0, &left), all_);
}

}  // namespace
}  // namespace convlab
