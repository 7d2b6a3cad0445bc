// Runs the steps of every shape with two parts as TileProduct does, with names
// of rows in place of numbers.
#include "kernels/convolution/cuda/wgmma/step_order.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace convlab::cuda {
namespace {

enum Kind { kLowByHigh, kHighByLow, kLarge };

// What a buffer holds: a pair of rows, and whether its low halves.
using Pair = std::pair<int, bool>;

struct Product {
  Kind kind;
  int row, vector, buffer;
  bool begins;
};

template <int kShape>
class Steps {
 public:
  using Order = StepOrder<kShape>;

  void Run(int steps) {
    for (int step = 0; step < steps; ++step) {
      // No products run when a step begins.
      Take(0, {});
      std::vector<Product> before;
      for (int group = 0; group < Order::kGroups; ++group) {
        const std::vector<Product> products = ProductsOf(group);
        for (const Product& product : products) Multiply(product);
        // Now the sums of the group before leave the tensor cores, if it was of
        // large products, while these run.
        if (Order::IsLarge(group - 1)) {
          for (const Product& product : products) {
            EXPECT_NE(product.vector, Order::Vector(group - 1));
          }
          Finish(group - 1);
        }
        if (group + 1 < Order::kLoaded) Take(group + 1, products);
      }
      Finish(Order::kGroups - 1);
      CheckStep();
    }
  }

 private:
  static bool Needs(int vector, int row) {
    return row >= Order::FirstRow(vector) && row < Order::EndRow(vector);
  }

  // Moves a group's operands to their buffers, while `running` reads others.
  void Take(int group, const std::vector<Product>& running) {
    const int turns = Order::FirstTurn(group + 1) - Order::FirstTurn(group);
    EXPECT_GE(turns, 1);
    // TileProduct loads two turns ahead.
    EXPECT_LE(turns, 2);
    for (int i = 0; i < turns; ++i) {
      const int turn = Order::FirstTurn(group) + i;
      const int buffer = Order::Buffer(turn);
      EXPECT_LT(buffer, Order::kBuffers);
      for (const Product& product : running) {
        EXPECT_NE(product.buffer, buffer) << "turn " << turn;
      }
      buffers_[buffer] = {Order::Pair(turn), Order::IsLow(turn)};
    }
  }

  static std::vector<Product> ProductsOf(int group) {
    std::vector<Product> products;
    if (Order::IsLarge(group)) {
      const int vector = Order::Vector(group);
      const int first = Order::FirstLarge(group);
      EXPECT_LT(first, Order::EndLarge(group));
      for (int row = first; row < Order::EndLarge(group); ++row) {
        products.push_back({kLarge, row, vector, Order::BufferOfHeld(row / 2),
                            Order::Begins(group) && row == first});
      }
      return products;
    }
    for (int turn = Order::FirstTurn(group); turn < Order::FirstTurn(group + 1);
         ++turn) {
      for (int vector = 0; vector < Order::kVectors; ++vector) {
        for (int whole = 0; whole <= (Order::IsWhole(turn) ? 1 : 0); ++whole) {
          for (int row : {2 * Order::Pair(turn), 2 * Order::Pair(turn) + 1}) {
            if (!Needs(vector, row)) continue;
            const bool low = Order::IsLow(turn);
            products.push_back({whole ? kLarge
                                : low ? kLowByHigh
                                      : kHighByLow,
                                row, vector, Order::Buffer(turn),
                                low && row == Order::BeginRow(vector)});
          }
        }
      }
    }
    return products;
  }

  void Multiply(const Product& product) {
    SCOPED_TRACE("row " + std::to_string(product.row) + " of vector " +
                 std::to_string(product.vector));
    EXPECT_EQ(buffers_[product.buffer],
              Pair(product.row / 2, product.kind == kLowByHigh));
    EXPECT_TRUE(
        done_.insert({product.kind, product.row, product.vector}).second);
    // A sum begins with its first product.
    std::vector<Product>& sum = sums_[product.vector];
    EXPECT_EQ(product.begins, sum.empty());
    sum.push_back(product);
  }

  // The sum of a group leaves the tensor cores.
  void Finish(int group) {
    std::vector<Product>& sum = sums_[Order::Vector(group)];
    int large = 0, of_pass[Order::kPasses] = {};
    for (const Product& product : sum) {
      if (product.kind == kLarge) ++large, ++of_pass[Order::Pass(product.row)];
    }
    EXPECT_GE(large, 1);
    EXPECT_LE(large, 3);
    // With short sums, where all rows but those of a pass are zero.
    for (const int of : of_pass) EXPECT_LE(of, Order::kPasses == 3 ? 1 : 2);
    sum.clear();
  }

  // All products were there, once each, and all sums are finished.
  void CheckStep() {
    int needed = 0;
    for (int vector = 0; vector < Order::kVectors; ++vector) {
      for (int row = 0; row < 2 * Order::kPairs; ++row) {
        if (!Needs(vector, row)) continue;
        ++needed;
        for (Kind kind : {kLowByHigh, kHighByLow, kLarge}) {
          EXPECT_EQ(done_.count({kind, row, vector}), 1)
              << kind << " of row " << row << ", vector " << vector;
        }
      }
      EXPECT_TRUE(sums_[vector].empty()) << "vector " << vector;
    }
    EXPECT_EQ(done_.size(), 3 * needed);
    done_.clear();
  }

  std::map<int, Pair> buffers_;
  std::set<std::tuple<Kind, int, int>> done_;
  std::map<int, std::vector<Product>> sums_;  // by vector, not yet finished
};

template <int kShape>
int RunShape() {
  if constexpr (kWgmmaShapes[kShape].parts == 2) {
    const WgmmaShape& shape = kWgmmaShapes[kShape];
    SCOPED_TRACE("shape " + std::to_string(kShape) + ", filters of " +
                 std::to_string(shape.kernel_size));
    EXPECT_LE(shape.held_pairs(), shape.pairs());
    Steps<kShape>().Run(3);
    return 1;
  } else {
    return 0;
  }
}

template <int... kShapes>
int RunShapes(std::integer_sequence<int, kShapes...>) {
  return (RunShape<kShapes>() + ...);
}

TEST(StepOrderTest, EveryShapeMultipliesEachRowOnce) {
  EXPECT_GE(RunShapes(std::make_integer_sequence<int, kWgmmaShapeCount>()), 20);
}

// Where few pairs stay in registers, large products of the others would be too
// many for one sum: the table of shapes has no such row.
TEST(StepOrderTest, AllPairsButOneAreHeld) {
  for (const WgmmaShape& shape : kWgmmaShapes) {
    if (shape.parts == 1) continue;
    EXPECT_GE(shape.held_pairs(), shape.pairs() - 1);
  }
}

}  // namespace
}  // namespace convlab::cuda
