#include "kernels/convolution/checking/mismatch.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/convolution/checking/mismatch_places.h"
#include "kernels/convolution/checking/reference.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr Problem kProblem = {5, 3, 20, 23, 7, 4};  // outputs of 17 x 20
constexpr uint32_t kPoison = 0x7f81beef;
constexpr Tolerance kTolerance = {1e-4};

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
float Poison() { return FromBits(kPoison); }

// A problem with random inputs and its reference.
struct Data {
  explicit Data(const Problem& p = kProblem, int seed = 1) : problem(p) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> floats(-1, 1);
    x.resize(p.input_elements());
    k.resize(p.kernel_elements());
    for (float& value : x) value = floats(generator);
    for (float& value : k) value = floats(generator);
    Workers workers(1);
    reference = ReferenceConvolution(p, x.data(), k.data(), workers);
    y.assign(reference.begin(), reference.end());
  }

  float& at(int64_t b, int64_t m, int64_t h, int64_t w) {
    return y[((b * problem.filters + m) * problem.output_height() + h) *
                 problem.output_width() +
             w];
  }
  double expected(int64_t b, int64_t m, int64_t h, int64_t w) const {
    return reference[((b * problem.filters + m) * problem.output_height() + h) *
                         problem.output_width() +
                     w];
  }

  // Calls `change` with each output and its place.
  void Change(const std::function<void(float& value, const OutputPlace&)>& f) {
    for (size_t i = 0; i < y.size(); ++i) f(y[i], PlaceOf(problem, i));
  }

  std::vector<std::string> Describe() const {
    return DescribeMismatch(problem, y, reference, kTolerance, kPoison,
                            {x, k, {}, {}})
        .lines;
  }

  Problem problem;
  std::vector<float> x, k, y;
  std::vector<double> reference;
};

// The lines for outputs that are poison wherever `wrong` holds.
std::vector<std::string> Unwritten(
    const std::function<bool(const OutputPlace&)>& wrong,
    const Problem& problem = kProblem) {
  Data data(problem);
  data.Change([&](float& value, const OutputPlace& p) {
    if (wrong(p)) value = Poison();
  });
  return data.Describe();
}

TEST(Mismatch, NothingIsSaidOfARightOutput) {
  Data data;
  EXPECT_THAT(data.Describe(), SizeIs(0));
  for (float& value : data.y) value *= 1 + 1e-6f;
  EXPECT_THAT(data.Describe(), SizeIs(0));
}

TEST(Mismatch, NamesTheProblemAndTheFirstElement) {
  Data data;
  data.at(1, 2, 3, 4) = 77;
  const auto lines = data.Describe();
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            "B=5 C=3 H=20 W=23 M=7 K=4: 1 of 11900 outputs are wrong");
  EXPECT_THAT(lines[1], HasSubstr("first at (b=1, m=2, h=3, w=4): got 77, "
                                  "expected "));
}

TEST(Mismatch, NamesThePlace) {
  const auto place = [](const std::function<bool(const OutputPlace&)>& wrong) {
    return Unwritten(wrong)[2];
  };
  using P = const OutputPlace&;
  EXPECT_EQ(place([](P) { return true; }), "they lie everywhere");
  EXPECT_EQ(place([](P p) { return p.w == 19; }),
            "they lie in the last column");
  EXPECT_EQ(place([](P p) { return p.w == 0; }),
            "they lie in the first column");
  EXPECT_EQ(place([](P p) { return p.h == 16; }), "they lie in the last row");
  EXPECT_EQ(place([](P p) { return p.h == 0; }), "they lie in the first row");
  EXPECT_EQ(place([](P p) { return p.w >= 16; }),
            "they lie in columns from 16 on (16 is a multiple of 16)");
  EXPECT_EQ(place([](P p) { return p.w >= 15; }),
            "they lie in columns from 15 on");
  EXPECT_EQ(place([](P p) { return p.b >= 2; }),
            "they lie in images from 2 on");
  EXPECT_EQ(place([](P p) { return p.m == 3; }), "they lie in filter 3");
  EXPECT_EQ(place([](P p) { return p.w % 2 == 1; }),
            "they lie in every second column, from 1 on");
  EXPECT_EQ(place([](P p) { return p.w % 8 >= 5; }),
            "they lie in columns 5 to 7 of every 8");
  EXPECT_EQ(place([](P p) { return p.w % 8 == 7; }),
            "they lie in one column of every 8, from 7 on");
  EXPECT_EQ(place([](P p) { return p.w == 19 && p.m == 6 && p.b >= 3; }),
            "they lie in the last column, the last filter, images from 3 on");
  EXPECT_EQ(place([](P p) { return p.h >= 3 && p.h <= 9; }),
            "they lie in rows 3 to 9");
}

TEST(Mismatch, NamesARunInMemory) {
  Data data;
  for (size_t i = 4096; i < data.y.size(); ++i) data.y[i] = Poison();
  EXPECT_EQ(data.Describe()[2],
            "they lie in one run: elements 4096 to 11899 of the 11900 in "
            "memory");
}

TEST(Mismatch, NamesAPlaceWhereOnlySomeAreWrong) {
  std::mt19937 generator(1);
  EXPECT_THAT(
      Unwritten([&](const OutputPlace& p) {
        return p.w == 19 && generator() % 3 == 0;
      })[2],
      testing::MatchesRegex("they lie in the last column .3. % of those."));
}

TEST(Mismatch, NamesManyImages) {
  constexpr Problem kManyImages = {70000, 1, 5, 4, 1, 3};
  const auto lines =
      Unwritten([](const OutputPlace& p) { return p.b >= 65535; }, kManyImages);
  EXPECT_EQ(lines[2], "they lie in images from 65535 on");
  EXPECT_EQ(lines[3], "never written");
}

// Returns what is said of the values, for outputs of `f`.
std::string Cause(
    const std::function<float(const Data&, const OutputPlace&)>& f,
    const Problem& problem = kProblem) {
  Data data(problem);
  const Data right(problem);
  data.Change([&](float& value, const OutputPlace& p) { value = f(right, p); });
  const auto lines = data.Describe();
  EXPECT_LE(lines.size(), 8u);
  return lines.size() > 3 ? lines[3] : "";
}

TEST(Mismatch, NamesWhatTheValuesAre) {
  using D = const Data&;
  using P = const OutputPlace&;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Cause([](D, P) { return Poison(); }), "never written");
  EXPECT_EQ(Cause([](D, P) { return FromBits(~uint32_t{0}); }),
            "never written");
  EXPECT_EQ(Cause([](D, P) { return 0.0f; }), "zero where values are expected");
  EXPECT_EQ(Cause([](D, P) { return 3.5f; }), "all have the value 3.5");
  EXPECT_THAT(Cause([](D, P) { return std::nanf(""); }),
              HasSubstr("NaN: from memory that nobody wrote, or sums added to "
                        "an output that was not cleared"));
  EXPECT_THAT(Cause([](D, P) { return kInfinity; }), HasSubstr("infinite"));
  EXPECT_THAT(
      Cause([](D d, P p) { return 2 * d.expected(p.b, p.m, p.h, p.w); }),
      HasSubstr("twice the expected value"));
  EXPECT_EQ(
      Cause([](D d, P p) { return 0.1 * d.expected(p.b, p.m, p.h, p.w); }),
      "each is 0.1 times the expected value");
  EXPECT_EQ(Cause([](D d, P p) { return -d.expected(p.b, p.m, p.h, p.w); }),
            "each is -1 times the expected value");
  EXPECT_EQ(Cause([](D d, P p) {
              return d.expected(p.b, p.m, p.h, std::min<int64_t>(p.w + 1, 19));
            }),
            "shifted: each is the value 1 column to the right");
  EXPECT_EQ(Cause([](D d, P p) {
              return d.expected(p.b, p.m, std::min<int64_t>(p.h + 1, 16), p.w);
            }),
            "shifted: each is the value 1 row below");
  EXPECT_EQ(Cause([](D d, P p) {
              return d.expected(p.b, p.m, std::max<int64_t>(p.h - 2, 0),
                                std::max<int64_t>(p.w - 1, 0));
            }),
            "shifted: each is the value 2 rows above and 1 column to the left");
  EXPECT_EQ(Cause([](D d, P p) { return d.expected(p.b, 0, p.h, p.w); }),
            "each is the value of filter 0");
  EXPECT_EQ(Cause([](D d, P p) { return d.expected(0, p.m, p.h, p.w); }),
            "each is the value of image 0");
  EXPECT_EQ(Cause([](D d, P p) {
              return d.expected(p.b, std::min<int64_t>(p.m + 1, 6), p.h, p.w);
            }),
            "each is the value of the next filter");
  EXPECT_EQ(Cause([](D d, P p) { return d.expected(p.b, p.m, p.w, p.h); },
                  {2, 2, 12, 12, 3, 3}),
            "rows and columns are exchanged");
  EXPECT_THAT(Cause([](D d, P p) {
                const int64_t n = (p.m * 17 + p.h) * 20 + p.w;
                return d.expected(p.b, n % 7, n / 7 / 20, n / 7 % 20);
              }),
              HasSubstr("NHWC"));
  EXPECT_EQ(Cause([](D d, P p) {
              const int64_t n = p.b * 7 + p.m;
              return d.expected(n % 5, n / 5, p.h, p.w);
            }),
            "stored in the order filter, image, row, column");
}

TEST(Mismatch, DividesWhatIsNeverWrittenFromTheRest) {
  const Data right;
  Data data;
  data.Change([&](float& value, const OutputPlace& p) {
    value = p.w == 19 ? Poison() : right.expected(p.b, p.m, p.h, p.w + 1);
  });
  const auto lines = data.Describe();
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[3], "595 of them: never written");
  EXPECT_EQ(lines[4],
            "11305 of them: shifted: each is the value 1 column to the right");
}

// A convolution of one's own, where `weight` and `input` give the factors of
// each product.
using Factor = std::function<float(const Data& d, const OutputPlace& place,
                                   int64_t c, int64_t p, int64_t q)>;
float Weight(const Data& d, int64_t m, int64_t c, int64_t p, int64_t q) {
  const Problem& n = d.problem;
  return d.k[((m * n.channels + c) * n.kernel_size + p) * n.kernel_size + q];
}
float Input(const Data& d, int64_t b, int64_t c, int64_t h, int64_t w) {
  const Problem& n = d.problem;
  return d.x[((b * n.channels + c) * n.height + h) * n.width + w];
}
std::string CauseOfSum(const Factor& weight, const Factor& input) {
  return Cause([&](const Data& d, const OutputPlace& place) {
    float sum = 0;
    for (int64_t c = 0; c < d.problem.channels; ++c) {
      for (int64_t p = 0; p < d.problem.kernel_size; ++p) {
        for (int64_t q = 0; q < d.problem.kernel_size; ++q) {
          sum += weight(d, place, c, p, q) * input(d, place, c, p, q);
        }
      }
    }
    return sum;
  });
}
std::string CauseOfWeights(const Factor& weight) {
  return CauseOfSum(
      weight, [](const Data& d, const OutputPlace& o, int64_t c, int64_t p,
                 int64_t q) { return Input(d, o.b, c, o.h + p, o.w + q); });
}

TEST(Mismatch, RecognizesWrongSums) {
  using D = const Data&;
  using O = const OutputPlace&;
  using I = int64_t;
  EXPECT_EQ(CauseOfWeights([](D d, O o, I c, I p, I q) {
              return Weight(d, o.m, c, p, q);
            }),
            "");
  EXPECT_EQ(CauseOfWeights([](D d, O o, I c, I p, I q) {
              return Weight(d, o.m, c, q, p);
            }),
            "the filters are transposed (rows and columns exchanged)");
  EXPECT_THAT(CauseOfWeights([](D d, O o, I c, I p, I q) {
                return Weight(d, o.m, c, 3 - p, 3 - q);
              }),
              HasSubstr("flipped in both directions"));
  EXPECT_EQ(CauseOfWeights([](D d, O o, I c, I p, I q) {
              return Weight(d, o.m, c, 3 - p, q);
            }),
            "the filters are flipped upside down");
  EXPECT_EQ(CauseOfWeights([](D d, O o, I c, I p, I q) {
              return Weight(d, o.m, c, p, 3 - q);
            }),
            "the filters are flipped left to right");
  EXPECT_EQ(CauseOfWeights([](D d, O o, I c, I p, I q) {
              return c == 0 ? Weight(d, o.m, c, p, q) : 0;
            }),
            "only channel 0 is summed");
  EXPECT_EQ(CauseOfWeights([](D d, O o, I c, I p, I q) {
              return c < 2 ? Weight(d, o.m, c, p, q) : 0;
            }),
            "the last channel is left out");
  EXPECT_EQ(CauseOfWeights([](D d, O o, I c, I p, I q) {
              return p < 3 ? Weight(d, o.m, c, p, q) : 0;
            }),
            "the last row of each filter is left out");
  EXPECT_EQ(CauseOfWeights(
                [](D d, O o, I, I p, I q) { return Weight(d, o.m, 0, p, q); }),
            "every channel has the weights of channel 0");
  EXPECT_EQ(CauseOfWeights([](D d, O o, I c, I p, I q) {
              return d.k[((c * 7 + o.m) * 4 + p) * 4 + q];
            }),
            "the filters are read in the order channel, filter");
  const Factor weight = [](D d, O o, I c, I p, I q) {
    return Weight(d, o.m, c, p, q);
  };
  EXPECT_EQ(CauseOfSum(weight,
                       [](D d, O o, I, I p, I q) {
                         return Input(d, o.b, 0, o.h + p, o.w + q);
                       }),
            "every channel reads channel 0 of the input");
  EXPECT_EQ(CauseOfSum(weight,
                       [](D d, O o, I c, I p, I q) {
                         const I i =
                             (o.b * 3 + c) * 20 * 23 + (o.h + p) * 20 + o.w + q;
                         return d.x[i];
                       }),
            "the input's height and width are exchanged");
}

// Random errors, dense and sparse, have neither place nor cause.
TEST(Mismatch, NothingIsReadIntoRandomErrors) {
  for (int seed = 1; seed <= 60; ++seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal(0, 7);
    const double share = std::pow(10.0, -1 - seed % 4) * 5;
    Data data(seed % 2 == 0 ? kProblem : Problem{3, 2, 9, 8, 4, 3}, seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    int wrong = 0;
    data.Change([&](float& value, const OutputPlace&) {
      if (uniform(generator) >= share) return;
      value = normal(generator);
      ++wrong;
    });
    if (wrong < 3) continue;
    const auto lines = data.Describe();
    ASSERT_GE(lines.size(), 4u) << seed;
    EXPECT_EQ(lines[2], "they lie scattered, without a pattern") << seed;
    EXPECT_THAT(lines[3], HasSubstr("the largest error is")) << seed;
  }
}

TEST(Mismatch, NanAndInfinitiesAreRightOnlyWhereExpected) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(IsRight(NAN, NAN, 0));
  EXPECT_TRUE(IsRight(kInfinity, kInfinity, 0));
  EXPECT_FALSE(IsRight(kInfinity, -kInfinity, 1));
  EXPECT_FALSE(IsRight(NAN, 1, 1e30));
  EXPECT_FALSE(IsRight(kInfinity, 1, 1e30));
  EXPECT_FALSE(IsRight(1, NAN, 1e30));
  EXPECT_FALSE(IsRight(1, kInfinity, 1e30));
  Data data;
  data.reference[100] = NAN;
  data.reference[200] = kInfinity;
  const auto lines = data.Describe();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[3], "NaN or infinities of the inputs are not kept");
}

TEST(Mismatch, AnExcerptKeepsTheNumbersOfItsImages) {
  Data data({2, 3, 20, 23, 7, 4});
  for (float& value : data.y) value = 0;
  std::vector<bool> wrong_images(1000, false);
  for (int i = 900; i < 1000; ++i) wrong_images[i] = true;
  const auto lines =
      DescribeMismatch(data.problem, data.y, data.reference, kTolerance,
                       kPoison, {{}, {}, {900, 950}, wrong_images})
          .lines;
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], HasSubstr("in 2 of 100 wrong images"));
  EXPECT_THAT(lines[1], HasSubstr("(b=900, m=0"));
  EXPECT_EQ(lines[2], "they lie in images from 900 on");
  EXPECT_EQ(lines[3], "zero where values are expected");
}

TEST(Mismatch, TheCauseIsOneOfTheLines) {
  Data data({2, 3, 20, 23, 7, 4});
  const auto describe = [&] {
    return DescribeMismatch(data.problem, data.y, data.reference, kTolerance,
                            kPoison);
  };
  EXPECT_FALSE(describe().unwritten);
  EXPECT_EQ(describe().cause, "");
  data.y[0] = Poison();
  EXPECT_TRUE(describe().unwritten);
  EXPECT_EQ(describe().cause, "never written");
  data.y[1] += 1;
  EXPECT_FALSE(describe().unwritten);
  EXPECT_EQ(describe().cause, "1 of them: never written");
  data.y[0] = static_cast<float>(data.reference[0]);
  EXPECT_EQ(describe().cause, describe().lines[3]);
  EXPECT_THAT(describe().cause, HasSubstr("the largest error is"));
}

}  // namespace
}  // namespace convlab
