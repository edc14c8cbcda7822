#include "runtime/plan/Philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

using namespace mega;

// Known answers published with the paper's own implementation.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                   {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, DropoutKeysDifferInEveryPart) {
  std::set<uint64_t> keys;
  for (uint64_t seed : {0, 1}) {
    for (int64_t step : {1, 2}) {
      for (int64_t name : {0, 1, 2}) {
        for (int64_t application : {0, 1, 2}) {
          keys.insert(dropoutKey(seed, step, name, application));
        }
      }
    }
  }
  EXPECT_EQ(keys.size(), 2u * 2 * 3 * 3);
}

TEST(Philox, ThresholdIsTheProbability) {
  EXPECT_EQ(dropoutThreshold(0), 0u);
  EXPECT_EQ(dropoutThreshold(0.5), 0x80000000u);
  EXPECT_EQ(dropoutThreshold(std::nextafter(1.0, 0.0)), 0xffffffffu);
}
