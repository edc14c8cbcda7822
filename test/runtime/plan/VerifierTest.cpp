#include "runtime/plan/Verifier.h"
#include "test/runtime/plan/ToyPlan.h"

#include <gtest/gtest.h>

using namespace mega;

TEST(Verifier, AcceptsTheToy) {
  const Status status = judge(*toyPlan());
  EXPECT_TRUE(status.isOk()) << status.message();
}
