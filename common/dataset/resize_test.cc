#include "common/dataset/resize.h"

#include <nettle/sha2.h>

#include <numeric>
#include <random>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/dataset/fashion_mnist.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

std::string Sha256(const std::vector<uint8_t>& bytes) {
  sha256_ctx context;
  sha256_init(&context);
  sha256_update(&context, bytes.size(), bytes.data());
  std::string digest(SHA256_DIGEST_SIZE, '\0');
  sha256_digest(&context, digest.size(),
                reinterpret_cast<uint8_t*>(digest.data()));
  return absl::BytesToHexString(digest);
}

// The definition in resize.h, word for word.
std::vector<uint8_t> Definition(const std::vector<uint8_t>& image, int64_t s,
                                int64_t S) {
  const int64_t d = 2 * S;
  const auto floor_divide = [](int64_t n, int64_t by) {
    return n >= 0 ? n / by : -((-n + by - 1) / by);
  };
  std::vector<uint8_t> out;
  for (int64_t y = 0; y < S; ++y) {
    for (int64_t x = 0; x < S; ++x) {
      const int64_t ny = (2 * y + 1) * s - S, nx = (2 * x + 1) * s - S;
      const int64_t fy = floor_divide(ny, d), fx = floor_divide(nx, d);
      const int64_t ty = ny - fy * d, tx = nx - fx * d;
      int64_t sum = 0;
      for (int64_t a = 0; a < 2; ++a) {
        for (int64_t b = 0; b < 2; ++b) {
          const int64_t row = fy + a, column = fx + b;
          if (row < 0 || row >= s || column < 0 || column >= s) continue;
          sum += (a == 0 ? d - ty : ty) * (b == 0 ? d - tx : tx) *
                 image[row * s + column];
        }
      }
      out.push_back(static_cast<uint8_t>(sum / (d * d)));
    }
  }
  return out;
}

// Checksums of all test images, resized by the definition, in file order.
// skimage 0.19 differs from it in at most 0.4 % of the pixels, by one.
TEST(Resize, GoldenChecksumsOfAllTestImages) {
  const auto dataset = LoadFashionMnist(FashionMnistFolder(), "t10k");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const struct {
    int size;
    int64_t sum;
    const char* sha256;
  } golden[] = {
      {28, 573469082,
       "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a"},
      {32, 743593455,
       "2639fd0fff08805edac12ba468b6f59c0eaed4b77edb2c28dadefe0a58baf3c5"},
      {48, 1675700258,
       "51af895368993b4dd45f865200cab92bb97d119f82cc879d8515c7177131c732"},
      {64, 2977388900,
       "4f74220d71aa835c1b355d6e31ff4b5ff63d1ec1029ba7a60b40f2d41ed35a0f"},
      {70, 3560348238,
       "13e32ec74f23a34f2aa625261850600108c6af5d777e87c1445d219b64bd5877"},
      {72, 3766012507,
       "70e91c81f6f8806ca4bab64748b977657a83894e5eb58cda8233f2b7a17abf14"},
      {86, 5373155060,
       "ca82d14f733d46568a4dbf94c30071dfe30894cbb3637fb92425063abcf69da4"},
  };
  for (const auto& [size, sum, sha256] : golden) {
    SCOPED_TRACE(size);
    const int64_t count = dataset->images.count;
    std::vector<uint8_t> out(count * size * size);
    EnlargeImages(dataset->images.pixels.data(), count, 28, size, out.data());
    EXPECT_EQ(std::accumulate(out.begin(), out.end(), int64_t{0}), sum);
    EXPECT_EQ(Sha256(out), sha256);
  }
}

// These sizes include sums beyond 32 bits, single pixels, and reductions.
TEST(Resize, FollowsTheDefinitionAtAnySize) {
  std::mt19937 random(1);
  for (const auto& [size, enlarged] :
       {std::pair(1, 1), std::pair(1, 7), std::pair(2, 1), std::pair(3, 3),
        std::pair(28, 9), std::pair(28, 29), std::pair(5, 2500)}) {
    SCOPED_TRACE(enlarged);
    std::vector<uint8_t> image(size * size);
    for (uint8_t& pixel : image) pixel = random() % 4 == 0 ? 255 : random();
    std::vector<uint8_t> out(int64_t{enlarged} * enlarged);
    EnlargeImages(image.data(), 1, size, enlarged, out.data());
    EXPECT_EQ(out, Definition(image, size, enlarged));
  }
}

// Every sum is a multiple of the divisor here: the worst case for rounding.
TEST(Resize, FlatImagesStayFlatInside) {
  for (int enlarged = 28; enlarged <= 300; ++enlarged) {
    for (const uint8_t grey : {1, 127, 255}) {
      const std::vector<uint8_t> image(28 * 28, grey);
      std::vector<uint8_t> out(enlarged * enlarged);
      EnlargeImages(image.data(), 1, 28, enlarged, out.data());
      const int margin = enlarged / 56 + 1;
      for (int y = margin; y < enlarged - margin; ++y) {
        for (int x = margin; x < enlarged - margin; ++x) {
          ASSERT_EQ(out[y * enlarged + x], grey) << enlarged;
        }
      }
    }
  }
}

}  // namespace
}  // namespace convlab
