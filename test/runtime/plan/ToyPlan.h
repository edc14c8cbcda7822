//===- ToyPlan.h - The plan written by hand, for tests ----------*- C++ -*-===//
#ifndef MEGA_TEST_RUNTIME_PLAN_TOYPLAN_H
#define MEGA_TEST_RUNTIME_PLAN_TOYPLAN_H

#include "runtime/plan/PlanFile.h"

#include <memory>
#include <string_view>

namespace mega {

/// test/runtime/plan/toy.json, to be changed at will.
std::unique_ptr<plan::PlanT> toyPlan();

/// By name; the test ends if there is none.
plan::FunctionT &functionNamed(plan::PlanT &plan, std::string_view name);
plan::ProgramT &programNamed(plan::PlanT &plan, std::string_view name);
plan::RegionT &regionNamed(plan::PlanT &plan, std::string_view name);
/// Actions of an entry point on stage 0.
std::vector<plan::Action> &actionsOf(plan::PlanT &plan, std::string_view entry);

/// Buffer `operand` of launch `launch` of a function.
plan::Buffer &operandOf(plan::FunctionT &function, size_t launch,
                        size_t operand);

/// Packs, loads and verifies: what megart does with a file.
Status judge(const plan::PlanT &plan);

} // namespace mega

#endif // MEGA_TEST_RUNTIME_PLAN_TOYPLAN_H
