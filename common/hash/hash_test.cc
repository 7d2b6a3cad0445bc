#include "common/hash/hash.h"

#include <string>

#include "gtest/gtest.h"

namespace convlab {
namespace {

// The examples of FIPS 180 and of RFC 4231 (test case 2).
TEST(Hash, KnownAnswers) {
  EXPECT_EQ(Sha256(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HmacSha256("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Hash, KeysLongerThanABlockCount) {
  const std::string key(200, 'k');
  EXPECT_NE(HmacSha256(key, "text"), HmacSha256(key + "k", "text"));
}

}  // namespace
}  // namespace convlab
