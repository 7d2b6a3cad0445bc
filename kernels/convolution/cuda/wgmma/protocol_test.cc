// The protocol by which the roles of WgmmaKernel hand over slabs and stages.
#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/convolution/cuda/wgmma/ring.h"
#include "kernels/convolution/cuda/wgmma/shape.h"

namespace convlab::cuda {
namespace {

// A model of the kernel's roles and barriers, which takes one step of one role
// at a time, in random order. It finds roles that use a buffer out of turn, or
// that wait forever.
class Rings {
 public:
  struct Setup {
    int buffers;
    int stages;  // 0 if outputs go from registers to device memory
    int converter_groups, multipliers;
    bool own_slabs;
    int slab_barriers, stage_barriers;
    int phases = 1;  // of a slab, each with a stage
    // Columns of windows of a slab, of which 32 make a tile, if outputs are
    // pooled (PoolingMultiplier); otherwise 0.
    int columns = 0;
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
    for (int i = 0; i < setup.multipliers; ++i) {
      roles_.push_back({setup.columns > 0 ? &Rings::Pool : &Rings::Multiply,
                        setup.own_slabs ? i : 0,
                        setup.own_slabs ? setup.multipliers : 1});
      roles_.back().warpgroup = i;
      roles_.back().column = 32 * i;
    }
    // Each turn has tiles for some of the warpgroups that take the slab.
    for (int i = 0; i < slabs * setup.phases; ++i) {
      first_tile_.push_back(random_() % setup.multipliers);
      taken_by_.push_back(1 + random_() % Takers());
    }
    tiles_ = taken_by_;
    if (setup.stages > 0) roles_.push_back({&Rings::Store, 0, 1});
    for (Role& role : roles_) {
      role.slabs = WgmmaRing(setup.buffers, setup.slab_barriers);
      role.stage = WgmmaRing(setup.stages, setup.stage_barriers);
      role.next_slabs = role.slabs;
      role.slabs.Advance(role.slab);
      role.stage.Advance(role.slab * setup.phases);
    }
  }

  // Returns what went wrong, or an empty string if all slabs were stored.
  std::string Run() {
    // Some roles are slower than others: they take a step in one of so many
    // rounds.
    std::vector<int> slowness;
    for (size_t i = 0; i < roles_.size(); ++i) {
      slowness.push_back(1 + random_() % 30);
    }
    // Rounds without a step, of which the slowest role takes one in 30.
    constexpr int kForever = 10000;
    for (int idle = 0; fault_.empty(); ++idle) {
      bool done = true;
      for (size_t i = 0; i < roles_.size(); ++i) {
        Role& role = roles_[i];
        if (role.slab >= slabs_) continue;
        done = false;
        if (random_() % slowness[i] == 0 && (this->*role.step)(role)) idle = 0;
      }
      if (done) break;
      if (idle > kForever) return "all roles wait for each other";
    }
    return fault_;
  }

 private:
  // As in shared memory, a phase is known by its parity alone.
  struct Barrier {
    explicit Barrier(int of) : count(of), left(of) {}
    void Arrive() {
      if (--left == 0) left = count, parity ^= 1;
    }
    bool IsOver(int phase_parity) const { return parity != phase_parity; }
    int count, left, parity = 0;
  };
  struct Role {
    bool (Rings::*step)(Role&);  // returns false while it waits
    int slab, slab_step;
    int state = 0, phase = 0, warpgroup = 0;
    WgmmaRing slabs = WgmmaRing(1, 1), stage = WgmmaRing(1, 1);
    // Of PoolingMultiplier: column_, and next_ with its ring.
    int column = 0, next = 0;
    WgmmaRing next_slabs = WgmmaRing(1, 1);

    // As in the kernel, each phase is a turn of the stages, and slabs that a
    // role leaves out are turns, too.
    void NextPhase() { ++phase, stage.Advance(); }
    void NextSlab(int phases) {
      state = phase = 0, slab += slab_step;
      slabs.Advance(slab_step), stage.Advance((slab_step - 1) * phases);
    }
  };

  // The number of warpgroups that multiply a slab.
  int Takers() const { return setup_.own_slabs ? 1 : setup_.multipliers; }
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
      const int place =
          (role.warpgroup + setup_.multipliers - first_tile_[turn]) %
          setup_.multipliers;
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

  // One tile, or what is in front of one: waits for a slab, reads the tile's
  // slabs, or gives one back.
  bool Pool(Role& role) {
    const bool passes = role.column >= setup_.columns;
    const int end =
        passes ? role.slab
               : std::min(role.slab + (role.column + 31) / setup_.columns,
                          slabs_ - 1);
    if (role.next <= end) {
      if (!full_[role.next_slabs.barrier].IsOver(role.next_slabs.parity)) {
        return false;
      }
      ++role.next, role.next_slabs.Advance();
    } else if (passes) {
      Release(role);
      role.column -= setup_.columns;
      role.NextSlab(1);
    } else {
      WgmmaRing ring = role.slabs;
      for (int slab = role.slab; slab <= end; ++slab, ring.Advance()) {
        Expect(converted_[ring.buffer] == slab,
               "a slab is read that is not there");
      }
      role.column += 32 * setup_.multipliers;
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
  std::vector<int> taken_;        // warpgroups that are done with each slab
  std::vector<int> on_stage_;     // the turn of each stage
  std::vector<bool> was_stored_;  // each turn
  // Of each turn: which warpgroup has the first tile, how many warpgroups have
  // one, and how many of these have not filled the stage yet.
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

TEST(WgmmaProtocol, NoRoleMistakesAPhaseForAnother) {
  std::set<std::tuple<int, int, bool, bool>> seen;
  for (const WgmmaShape& shape : kWgmmaShapes) {
    if (shape.pool > 0) continue;
    if (!seen.insert({shape.converter_groups, shape.multipliers,
                      shape.own_slabs, shape.direct})
             .second) {
      continue;
    }
    for (int buffers = 2; buffers <= shape.most_buffers(); ++buffers) {
      for (int stages = 0; stages <= 2; ++stages) {
        if (!shape.Takes(buffers, stages)) continue;
        SCOPED_TRACE(testing::Message()
                     << buffers << " buffers, " << stages << " stages, "
                     << shape.converter_groups << " groups, "
                     << shape.multipliers << " warpgroups, own slabs "
                     << shape.own_slabs);
        // With slabs of their own, each slab is one phase.
        for (int phases = 1; phases <= (shape.own_slabs ? 1 : 3); ++phases) {
          EXPECT_EQ(FirstFault({buffers, stages, shape.converter_groups,
                                shape.multipliers, shape.own_slabs,
                                shape.barriers(buffers), shape.barriers(stages),
                                phases}),
                    "");
        }
      }
    }
  }
}

// Tiles that begin in one slab and end in another.
TEST(WgmmaProtocol, WarpgroupsTakeTilesOfSeveralSlabs) {
  int taken = 0;
  for (const WgmmaShape& shape : kWgmmaShapes) {
    if (shape.pool == 0) continue;
    for (const int columns : {5, 11, 15, 16, 31, 32, 33, 81, 100}) {
      const int of_tile = (31 + columns - 1) / columns + 1;
      for (int buffers = of_tile + 1; buffers <= shape.most_buffers();
           ++buffers) {
        if (!shape.Takes(buffers, 0)) continue;
        SCOPED_TRACE(testing::Message()
                     << columns << " columns, " << buffers << " buffers");
        ++taken;
        EXPECT_EQ(
            FirstFault({buffers, 0, shape.converter_groups, shape.multipliers,
                        false, shape.barriers(buffers), 1, 1, columns}),
            "");
      }
    }
  }
  EXPECT_GT(taken, 20);
  // With one buffer fewer than a tile needs all wait for each other.
  EXPECT_NE(FirstFault({3, 0, 1, 2, false, 3, 1, 1, 11}), "");
}

// Why warpgroups with slabs of their own need barriers of their own.
TEST(WgmmaProtocol, FewerBarriersFail) {
  // Here two warpgroups share the barriers of three buffers, or of one stage.
  EXPECT_NE(FirstFault({3, 2, 2, 2, true, 3, 2}), "");
  EXPECT_NE(FirstFault({3, 1, 1, 2, true, 6, 1}), "");
  // Here three groups of converters share the barriers of four buffers.
  EXPECT_NE(FirstFault({4, 2, 3, 2, true, 4, 2}), "");
}

}  // namespace
}  // namespace convlab::cuda
