//===- ToyRanks.h - The toy plan on several ranks ---------------*- C++ -*-===//
//
// The plan written by hand (ToyPlan.h), with conversions put where a compiler
// would: for the tests of executors and of training.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_TEST_RUNTIME_PLAN_TOYRANKS_H
#define MEGA_TEST_RUNTIME_PLAN_TOYRANKS_H

#include "test/runtime/plan/ToyPlan.h"

namespace mega {

/// One rank with a global batch of 2 * `microBatches` rows.
std::unique_ptr<plan::PlanT> toyWithMicroBatches(uint32_t microBatches);

/// `dp` replicas with 2 micro-batches each, thus as many rows as one rank with
/// 2 * dp micro-batches. Gradients, label counts and loss sums are summed over
/// dp. With `sharded`, a rank has moments and variances of its own piece only
/// (ZeRO-1), and the sum of the gradients lies in it; dp divides 120 then.
std::unique_ptr<plan::PlanT> dataParallelToy(uint32_t dp, bool sharded = false);

/// Five ranks, each with one column of the token embeddings: what they look up
/// is gathered, and of its gradient each takes its slice.
std::unique_ptr<plan::PlanT> tensorParallelToy();

} // namespace mega

#endif // MEGA_TEST_RUNTIME_PLAN_TOYRANKS_H
