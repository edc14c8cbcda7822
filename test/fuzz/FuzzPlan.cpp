//===- FuzzPlan.cpp - Plan files ------------------------------------------===//
//
// Loader and verifier on any bytes. The mutator keeps the header right, so that
// what is behind it is reached, and takes every other mutation from Mutants.h
// as long as the plan can be loaded.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Inspect.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Verifier.h"
#include "test/plan-mutants/Mutants.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

using namespace mega;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

namespace {

std::vector<std::byte> bytesOf(const uint8_t *data, size_t size) {
  const auto *begin = reinterpret_cast<const std::byte *>(data);
  return {begin, begin + size};
}

/// Empty if the plan is none that mutantsOf takes.
std::vector<std::byte> spoilt(const uint8_t *data, size_t size, unsigned seed) {
  auto loaded = loadPlan(bytesOf(data, size));
  if (!loaded.isOk()) {
    return {};
  }
  const std::unique_ptr<plan::PlanT> plan(loaded->root().UnPack());
  const bool fits = plan->entry_points.size() >= 2 &&
                    !plan->loss_terms.empty() && !plan->inputs.empty() &&
                    plan->gradient_square_sum;
  if (!fits ||
      std::any_of(plan->entry_points.begin(), plan->entry_points.end(),
                  [](const auto &e) { return e->stages.size() != 1; })) {
    return {};
  }
  std::vector<Mutant> mutants = mutantsOf(*plan);
  mutants[seed % mutants.size()].apply(*plan);
  return packPlan(*plan);
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t most, unsigned seed) {
  if (seed % 2 == 0) {
    const std::vector<std::byte> file = spoilt(data, size, seed / 2);
    if (!file.empty() && file.size() <= most) {
      std::memcpy(data, file.data(), file.size());
      return file.size();
    }
  }
  if (size <= kPlanHeaderBytes || most <= kPlanHeaderBytes) {
    return LLVMFuzzerMutate(data, size, most);
  }
  const size_t payload =
      LLVMFuzzerMutate(data + kPlanHeaderBytes, size - kPlanHeaderBytes,
                       most - kPlanHeaderBytes);
  // Damaged headers as well, but seldom.
  if (seed % 64 != 1) {
    sealPlan({reinterpret_cast<std::byte *>(data), kPlanHeaderBytes + payload});
  }
  return kPlanHeaderBytes + payload;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto plan = loadPlan(bytesOf(data, size));
  if (plan.isOk()) {
    const Status status = verifyPlan(plan->root());
    if (inspectText(*plan).empty() || inspectJson(*plan).empty()) {
      std::abort();
    }
    if (!status.isOk() && status.code() != Code::BadInput) {
      std::abort();
    }
  }
  return 0;
}
