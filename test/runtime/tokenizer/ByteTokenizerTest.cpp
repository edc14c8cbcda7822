#include "runtime/tokenizer/ByteTokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mega;

TEST(ByteTokenizer, GivesEachByteItsValue) {
  std::vector<int32_t> tokens = {ByteTokenizer::kEndOfDocument};
  EXPECT_TRUE(
      ByteTokenizer().encode(std::string_view("a\0\xff", 3), tokens).isOk());
  EXPECT_THAT(tokens, testing::ElementsAre(256, 97, 0, 255));
  EXPECT_EQ(ByteTokenizer().decode(tokens), std::string("a\0\xff", 3));
}
