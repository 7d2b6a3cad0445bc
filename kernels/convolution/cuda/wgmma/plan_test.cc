#include "kernels/convolution/cuda/wgmma/plan.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/lib/filter_layout.h"
#include "kernels/convolution/cuda/lib/plan_testing.h"
#include "kernels/convolution/problem.h"

namespace convlab::cuda {
namespace {

std::string Describe(const Problem& p, const WgmmaPlan& plan) {
  return DescribeProblem(p) + "shape: " + Text({plan.shape}) +
         "slab: " + Text({plan.slab_blocks});
}

// That the kernel stays in its memory and computes every output.
void CheckPlan(const Problem& problem, const WgmmaPlan& plan) {
  SCOPED_TRACE(Describe(problem, plan));
  const WgmmaShape& shape = kWgmmaShapes[plan.shape];
  const int K = plan.K;
  EXPECT_EQ(shape.kernel_size, K);
  EXPECT_GE(plan.pixel_halves, plan.C);
  EXPECT_EQ(plan.pixel_halves % (shape.wide ? 4 : 2), 0);
  EXPECT_GE(plan.steps * 16, (K + shape.shifts - 1) * plan.pixel_halves);
  EXPECT_GE(plan.passes * plan.pass_steps, plan.steps);
  EXPECT_LT((plan.passes - 1) * plan.pass_steps, plan.steps);
  if (shape.parts == 1) {
    EXPECT_EQ(plan.passes, 1);
  } else {
    EXPECT_LE(plan.pass_steps * K * (shape.one_sum ? 3 : 1), 42);
  }

  // Units cover the output; slabs the units, groups and phases the filters, and
  // none is empty.
  EXPECT_GE(plan.block_units * shape.shifts, plan.W_out);
  EXPECT_LT((plan.block_units - 1) * shape.shifts, plan.W_out);
  EXPECT_EQ(plan.units,
            (plan.H_out + shape.rows - 1) / shape.rows * plan.block_units);
  EXPECT_GE(int64_t{plan.slabs} * plan.slab_units, plan.units);
  EXPECT_LT(int64_t{plan.slabs - 1} * plan.slab_units, plan.units);
  const int slab_rows = plan.slab_blocks * shape.rows;
  for (int slab = 0; slab < plan.slabs; ++slab) {
    const int first = slab * plan.slab_units;
    const int last = std::min(first + plan.slab_units, plan.units) - 1;
    EXPECT_LE(last / plan.block_units - first / plan.block_units,
              plan.slab_blocks - 1);
  }
  // Who stages stores whole rows: slabs are of whole blocks.
  EXPECT_TRUE(shape.direct || plan.slabs == 1 ||
              plan.slab_units == plan.slab_blocks * plan.block_units);
  EXPECT_GE(plan.groups * 8 * shape.octets, plan.M);
  EXPECT_LT((plan.groups - 1) * 8 * shape.octets, plan.M);
  EXPECT_GE(plan.phase_groups, 1);

  // The last unit's last load, in the last row of the last step.
  const int64_t last =
      int64_t{slab_rows + K - 2} * plan.pitch +
      int64_t{plan.block_units - 1} * shape.shifts * plan.pixel_halves / 2 +
      int64_t{plan.steps} * 8;
  EXPECT_LE(last, plan.slab_words);
  // The last filter's last output, wherever the target begins.
  const int64_t filters =
      std::min(plan.phase_groups * 8 * shape.octets, plan.M);
  const int64_t rows = std::min(slab_rows, plan.H_out);
  EXPECT_LE((filters - 1) * plan.stage_pitch + 31 + rows * plan.W_out,
            plan.stage_words);
  EXPECT_EQ(plan.stages == 0, shape.direct);
  EXPECT_TRUE(!shape.direct || plan.phase_groups == plan.groups);
  if (plan.merged) {
    EXPECT_EQ(plan.slabs, 1);
    EXPECT_EQ(plan.phase_groups, plan.groups);
    EXPECT_EQ(plan.stage_pitch, plan.H_out * plan.W_out);
  } else {
    EXPECT_GE(plan.stage_pitch, 31 + rows * plan.W_out);
  }
  if (plan.raw_words > 0) {
    EXPECT_EQ(plan.slabs, 1);
    EXPECT_EQ(plan.C * plan.H * plan.W % 4, 0);
    EXPECT_GE(plan.raw_words, plan.C * plan.H * plan.W);
    // Each group of converters has one that is read and one that comes, or one.
    EXPECT_EQ(plan.raw_buffers % shape.converter_groups, 0);
    EXPECT_LE(plan.raw_buffers, 2 * shape.converter_groups);
  } else {
    EXPECT_EQ(plan.raw_buffers, 0);
  }
  EXPECT_GE(plan.slab_buffers, shape.converter_groups);
  if (shape.own_slabs) {
    EXPECT_GT(plan.slab_buffers, shape.consumers);
    EXPECT_EQ(plan.phase_groups, plan.groups);
  }
  EXPECT_LE(plan.slab_buffers, kWgmmaMostBuffers);
  EXPECT_LE(plan.stages, kWgmmaMostBuffers);
  EXPECT_LE(plan.raw_buffers, kWgmmaMostBuffers);

  // All of it, and that what begins on 16 bytes does.
  const int64_t words =
      plan.filter_bytes(shape.parts) / 4 +
      int64_t{shape.parts} * plan.slab_buffers * plan.slab_words +
      int64_t{plan.raw_buffers} * plan.raw_words +
      int64_t{plan.stages} * plan.stage_words;
  EXPECT_EQ(words * 4, plan.shared_bytes);
  EXPECT_LE(plan.shared_bytes, kH200Shared);
  EXPECT_EQ(plan.group_bytes % 16, 0);
  EXPECT_EQ(plan.slab_words % 4, 0);
  EXPECT_EQ(plan.raw_words % 4, 0);
  EXPECT_EQ(plan.stage_words % 32, 0);
  // wgmma's descriptors address 2^18 bytes.
  EXPECT_LT(plan.shared_bytes, 1 << 18);
}

// Of an operand: halves of a split one, or rounded ones (WgmmaShape::parts).
constexpr int kParts[] = {2, 1};

WgmmaPlan PlanFor(const Problem& problem, int parts) {
  WgmmaPlan plan;
  EXPECT_TRUE(
      MakeWgmmaPlan(problem, parts, kH200Multiprocessors, kH200Shared, &plan));
  EXPECT_EQ(kWgmmaShapes[plan.shape].parts, parts);
  return plan;
}

TEST(Divisor, IsExactUpToTheLargestInt) {
  constexpr int kMost = std::numeric_limits<int>::max();
  std::mt19937 random(1);
  std::vector<int> divisors = {kMost, kMost - 1, 1 << 30, (1 << 30) + 1};
  for (int d = 1; d <= 300; ++d) divisors.push_back(d);
  for (int i = 0; i < 300; ++i) {
    const int shift = random() % 31;
    divisors.push_back(1 + (random() % kMost >> shift));
  }
  for (const int d : divisors) {
    const Divisor divisor(d);
    EXPECT_EQ(divisor.Quotient(kMost), kMost / d) << d;
    for (int i = 0; i < 100; ++i) {
      // A multiple, and the number before it.
      const int n = random() % (kMost / d + 1u) * d;
      EXPECT_EQ(divisor.Quotient(n), n / d) << n << " / " << d;
      const int before = std::max(n - 1, 0);
      EXPECT_EQ(divisor.Quotient(before), before / d) << before << " / " << d;
    }
  }
}

TEST(WgmmaPlan, RegistersGoRound) {
  for (const WgmmaShape& shape : kWgmmaShapes) {
    EXPECT_EQ(shape.rows % shape.vector_rows, 0);
    const int warpgroups = shape.threads / 128;
    const int given = 65536 / shape.threads / 8 * 8;
    EXPECT_LE(shape.consumers * shape.consumer_registers() +
                  (warpgroups - shape.consumers) * shape.converter_registers(),
              given * warpgroups);
    EXPECT_GE(shape.converter_warps(), shape.converter_groups);
    EXPECT_LE(shape.most_buffers(), kWgmmaMostBuffers);
    EXPECT_LE(2 * shape.converter_groups, shape.most_barriers());
    EXPECT_LE(2 * shape.converter_groups, kWgmmaMostBuffers);
    // For each part the sums of all rows, two rows of operands and the next
    // ones.
    const int sums = shape.one_sum ? 1 : shape.parts;
    EXPECT_LT(sums * shape.rows * shape.octets * shape.shifts * 4 +
                  shape.parts * 4 * (2 + shape.ahead),
              shape.consumer_registers());
    // A turn of the loop over steps is two of them.
    const int input_rows = shape.rows + shape.kernel_size - 1;
    EXPECT_EQ(2 * input_rows % shape.ahead, 0);
    // Columns of a product that the kernel has.
    const int columns = 8 * shape.octets * shape.vector_rows * shape.shifts;
    EXPECT_TRUE(columns == 24 || columns == 32 || columns == 48) << columns;
    EXPECT_TRUE(shape.shifts == 1 || shape.shifts == 2);
  }
}

TEST(WgmmaPlan, ServesTheSecondLayersOfTheCourse) {
  for (const Layer& layer : kSecondLayers) {
    for (const int parts : kParts) {
      CheckPlan(layer.At(10000), PlanFor(layer.At(10000), parts));
    }
  }
}

// What a round loads: 16 values of each thread.
TEST(WgmmaPlan, CountsRounds) {
  // 12 channels as three of 4; 4 pixels of one, or 2 of two.
  EXPECT_EQ(WgmmaRounds(12, 900, 4, 1, 225), 3);
  EXPECT_EQ(WgmmaRounds(12, 901, 4, 1, 225), 6);
  EXPECT_EQ(WgmmaRounds(12, 900, 4, 2, 225), 4);
  // 7 channels as four of 2; 8 pixels of one, or 2 of four.
  EXPECT_EQ(WgmmaRounds(7, 450, 2, 1, 225), 4);
  EXPECT_EQ(WgmmaRounds(7, 450, 2, WgmmaManyUnits(2), 225), 1);
}

// One image is cut so that more than one multiprocessor works on it.
TEST(WgmmaPlan, CutsASingleImage) {
  for (const int parts : kParts) {
    EXPECT_GT(PlanFor({1, 12, 33, 33, 24, 5}, parts).slabs, 1);
  }
}

TEST(WgmmaPlan, AnyPlanIsSound) {
  std::mt19937 random(5);
  const auto pick = [&](int least, int most) {
    return least + static_cast<int>(random() % (most - least + 1));
  };
  std::map<int, int> made;  // by parts
  for (int i = 0; i < 2000; ++i) {
    const int K = 2 * pick(1, 4) + 1;
    const Problem problem = {pick(1, 200),     pick(1, 24), K + pick(0, 60),
                             K + pick(0, 150), pick(1, 70), K};
    for (const int parts : kParts) {
      WgmmaPlan plan;
      if (MakeWgmmaPlan(problem, parts, kH200Multiprocessors, kH200Shared,
                        &plan)) {
        CheckPlan(problem, plan);
        ++made[parts];
      }
    }
  }
  for (const int parts : kParts) EXPECT_GT(made[parts], 1000);
}

// The kernel's warps and barriers, one step at a time in any order, to see that
// nobody touches a buffer out of turn and that nobody waits forever.
class Rings {
 public:
  struct Setup {
    int buffers, stages;
    int converter_groups, consumers;
    bool own_slabs;
    int slab_barriers, stage_barriers;  // no stages: outputs go from registers
    int phases = 1;                     // of a slab, each with a stage
  };

  Rings(const Setup& setup, int slabs, std::mt19937& random)
      : setup_(setup),
        slabs_(slabs),
        random_(random),
        full_(setup.slab_barriers, Barrier(1)),
        empty_(setup.slab_barriers, Barrier(Takers())),
        staged_(setup.stage_barriers, Barrier(Takers())),
        stored_(setup.stage_barriers, Barrier(1)),
        converted_(setup.buffers, -1),
        taken_(slabs, 0),
        on_stage_(setup.stages, -1),
        was_stored_(int64_t{slabs} * setup.phases, false) {
    for (int i = 0; i < setup.converter_groups; ++i) {
      roles_.push_back({&Rings::Convert, i, setup.converter_groups});
    }
    for (int i = 0; i < setup.consumers; ++i) {
      roles_.push_back({&Rings::Multiply, setup.own_slabs ? i : 0,
                        setup.own_slabs ? setup.consumers : 1});
      roles_.back().consumer = i;
    }
    // Each turn has tiles for some of those who take the slab.
    for (int i = 0; i < slabs * setup.phases; ++i) {
      first_tile_.push_back(random_() % setup.consumers);
      taken_by_.push_back(1 + random_() % Takers());
    }
    tiles_ = taken_by_;
    if (setup.stages > 0) roles_.push_back({&Rings::Store, 0, 1});
    for (Role& role : roles_) {
      role.slabs = WgmmaRing(setup.buffers, setup.slab_barriers);
      role.stage = WgmmaRing(setup.stages, setup.stage_barriers);
      role.slabs.Advance(role.slab);
      role.stage.Advance(role.slab * setup.phases);
    }
  }

  // Empty if all slabs were stored, or what went wrong.
  std::string Run() {
    // Some are slower than others.
    std::vector<int> slowness;
    for (size_t i = 0; i < roles_.size(); ++i) {
      slowness.push_back(1 + random_() % 30);
    }
    // Of the slowest, one round in 30 is a step.
    constexpr int kForEver = 10000;
    for (int idle = 0; fault_.empty(); ++idle) {
      bool done = true;
      for (size_t i = 0; i < roles_.size(); ++i) {
        Role& role = roles_[i];
        if (role.slab >= slabs_) continue;
        done = false;
        if (random_() % slowness[i] == 0 && (this->*role.step)(role)) idle = 0;
      }
      if (done) break;
      if (idle > kForEver) return "everybody waits";
    }
    return fault_;
  }

 private:
  // As in shared memory: it tells its phase from the next by the parity alone.
  struct Barrier {
    explicit Barrier(int of) : count(of), left(of) {}
    void Arrive() {
      if (--left == 0) left = count, parity ^= 1;
    }
    bool IsOver(int phase_parity) const { return parity != phase_parity; }
    int count, left, parity = 0;
  };
  struct Role {
    bool (Rings::*step)(Role&);  // false: it waits
    int slab, slab_step;
    int state = 0, phase = 0, consumer = 0;
    WgmmaRing slabs = WgmmaRing(1, 1), stage = WgmmaRing(1, 1);

    // As the kernel does: a turn of the stages for each phase, and the turns of
    // the slabs that are left out.
    void NextPhase() { ++phase, stage.Advance(); }
    void NextSlab(int phases) {
      state = phase = 0, slab += slab_step;
      slabs.Advance(slab_step), stage.Advance((slab_step - 1) * phases);
    }
  };

  // How many warpgroups multiply a slab.
  int Takers() const { return setup_.own_slabs ? 1 : setup_.consumers; }
  void Expect(bool right, const char* fault) {
    if (!right) fault_ = fault;
  }

  bool Convert(Role& role) {
    const int before = role.slab - setup_.buffers;
    int& buffer = converted_[role.slabs.buffer];
    if (role.state == 0) {
      if (!empty_[role.slabs.free_barrier()].IsOver(role.slabs.free_parity())) {
        return false;
      }
      Expect(before < 0 || taken_[before] == Takers(),
             "a slab is overwritten that is still read");
      buffer = -1, role.state = 1;
    } else {
      buffer = role.slab;
      full_[role.slabs.barrier].Arrive();
      role.NextSlab(setup_.phases);
    }
    return true;
  }

  bool Multiply(Role& role) {
    const int turn = role.slab * setup_.phases + role.phase;
    const int before = turn - setup_.stages;
    if (role.state == 0) {
      if (!full_[role.slabs.barrier].IsOver(role.slabs.parity)) return false;
      role.state = 1;
    } else if (setup_.stages == 0) {
      // The slab is free before the outputs are stored.
      if (role.state == 1) {
        Release(role);
        role.state = 2;
      } else {
        role.NextSlab(setup_.phases);
      }
    } else if (role.state == 1) {
      if (!setup_.own_slabs && !staged_[role.stage.free_barrier()].IsOver(
                                   role.stage.free_parity())) {
        return false;
      }
      const int place = (role.consumer + setup_.consumers - first_tile_[turn]) %
                        setup_.consumers;
      role.state = setup_.own_slabs || place < taken_by_[turn] ? 2 : 3;
    } else if (role.state == 2) {
      if (!stored_[role.stage.free_barrier()].IsOver(
              role.stage.free_parity())) {
        return false;
      }
      Expect(before < 0 || was_stored_[before],
             "a stage is overwritten that is still stored");
      on_stage_[role.stage.buffer] = turn, --tiles_[turn];
      role.state = 3;
    } else {
      staged_[role.stage.barrier].Arrive();
      role.NextPhase();
      role.state = 1;
      if (role.phase == setup_.phases) {
        Release(role);
        role.NextSlab(setup_.phases);
      }
    }
    return true;
  }

  void Release(const Role& role) {
    Expect(converted_[role.slabs.buffer] == role.slab,
           "a slab is read that is not there");
    ++taken_[role.slab];
    empty_[role.slabs.barrier].Arrive();
  }

  bool Store(Role& role) {
    const int turn = role.slab * setup_.phases + role.phase;
    if (role.state == 0) {
      if (!staged_[role.stage.barrier].IsOver(role.stage.parity)) return false;
      role.state = 1;
    } else {
      Expect(on_stage_[role.stage.buffer] == turn && tiles_[turn] == 0,
             "a stage is stored that is not complete");
      was_stored_[turn] = true;
      stored_[role.stage.barrier].Arrive();
      role.NextPhase();
      role.state = 0;
      if (role.phase == setup_.phases) role.NextSlab(setup_.phases);
    }
    return true;
  }

  const Setup setup_;
  const int slabs_;
  std::mt19937& random_;
  std::vector<Role> roles_;
  std::vector<Barrier> full_, empty_, staged_, stored_;
  std::vector<int> converted_;    // the slab in each buffer
  std::vector<int> taken_;        // how many are done with each slab
  std::vector<int> on_stage_;     // the turn of each stage
  std::vector<bool> was_stored_;  // each turn
  // Which warpgroup has the first tile of a turn, how many have one, and how
  // many are not on the stage yet.
  std::vector<int> first_tile_, taken_by_, tiles_;
  std::string fault_;
};

std::string FirstFault(const Rings::Setup& setup) {
  std::mt19937 random(3);
  for (int run = 0; run < 500; ++run) {
    std::string fault = Rings(setup, 40, random).Run();
    if (!fault.empty()) return fault;
  }
  return "";
}

TEST(WgmmaPlan, NobodyMistakesAPhaseForAnother) {
  std::set<std::tuple<int, int, bool, bool>> seen;
  for (const WgmmaShape& shape : kWgmmaShapes) {
    if (!seen.insert({shape.converter_groups, shape.consumers, shape.own_slabs,
                      shape.direct})
             .second) {
      continue;
    }
    for (int buffers = 2; buffers <= shape.most_buffers(); ++buffers) {
      for (int stages = 0; stages <= 2; ++stages) {
        if (!shape.Takes(buffers, stages)) continue;
        SCOPED_TRACE(testing::Message()
                     << buffers << " buffers, " << stages << " stages, "
                     << shape.converter_groups << " groups, " << shape.consumers
                     << " warpgroups, own slabs " << shape.own_slabs);
        // With slabs of their own a slab is a phase.
        for (int phases = 1; phases <= (shape.own_slabs ? 1 : 3); ++phases) {
          EXPECT_EQ(FirstFault({buffers, stages, shape.converter_groups,
                                shape.consumers, shape.own_slabs,
                                shape.barriers(buffers), shape.barriers(stages),
                                phases}),
                    "");
        }
      }
    }
  }
}

// What the barriers of one's own are for.
TEST(WgmmaPlan, FewerBarriersAreMistaken) {
  // Two warpgroups with slabs of their own share the barriers of three buffers,
  // or of one stage.
  EXPECT_NE(FirstFault({3, 2, 2, 2, true, 3, 2}), "");
  EXPECT_NE(FirstFault({3, 1, 1, 2, true, 6, 1}), "");
}

TEST(WgmmaPlan, RefusesWhatDoesNotFit) {
  WgmmaPlan plan;
  for (const int parts : kParts) {
    // A size that is not compiled; filters that need more than there is.
    EXPECT_FALSE(MakeWgmmaPlan({1, 4, 40, 40, 16, 11}, parts,
                               kH200Multiprocessors, kH200Shared, &plan));
    EXPECT_FALSE(MakeWgmmaPlan({1, 64, 40, 40, 128, 5}, parts,
                               kH200Multiprocessors, kH200Shared, &plan));
    // Bytes of filters beyond 2^31.
    for (const Problem& problem :
         {Problem{1, 5000000, 3, 3, 1, 3}, Problem{1, 2000000, 5, 5, 1, 5}}) {
      EXPECT_FALSE(MakeWgmmaPlan(problem, parts, kH200Multiprocessors,
                                 kH200Shared, &plan));
    }
  }
}

}  // namespace
}  // namespace convlab::cuda
