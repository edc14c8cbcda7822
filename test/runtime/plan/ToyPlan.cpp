#include "test/runtime/plan/ToyPlan.h"

#include "runtime/plan/Verifier.h"

#include <flatbuffers/idl.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace mega {
namespace {

std::string readText(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

[[noreturn]] void fail(std::string_view what, std::string_view name) {
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(what.size()),
               what.data(), static_cast<int>(name.size()), name.data());
  std::abort();
}

template <typename T>
T &named(std::vector<std::unique_ptr<T>> &all, std::string_view name) {
  for (auto &one : all) {
    if (one->name == name) {
      return *one;
    }
  }
  fail("the toy plan has no", name);
}

} // namespace

std::unique_ptr<plan::PlanT> toyPlan() {
  const std::string root = MEGA_SOURCE_DIR;
  flatbuffers::Parser parser;
  if (!parser.Parse(readText(root + "/runtime/plan/plan.fbs").c_str()) ||
      !parser.Parse(readText(root + "/test/runtime/plan/toy.json").c_str())) {
    fail("toy.json", parser.error_);
  }
  return plan::UnPackPlan(parser.builder_.GetBufferPointer());
}

plan::FunctionT &functionNamed(plan::PlanT &plan, std::string_view name) {
  return named(plan.functions, name);
}
plan::ProgramT &programNamed(plan::PlanT &plan, std::string_view name) {
  return named(plan.programs, name);
}
plan::RegionT &regionNamed(plan::PlanT &plan, std::string_view name) {
  return named(plan.regions, name);
}
std::vector<plan::Action> &actionsOf(plan::PlanT &plan,
                                     std::string_view entry) {
  return named(plan.entry_points, entry).stages.at(0)->actions;
}

plan::Buffer &operandOf(plan::FunctionT &function, size_t launch,
                        size_t operand) {
  const size_t first = function.launches.at(launch).first_operand();
  return function.buffers.at(function.operands.at(first + operand));
}

Status judge(const plan::PlanT &plan) {
  MEGA_ASSIGN_OR_RETURN(const LoadedPlan loaded, loadPlan(packPlan(plan)));
  return verifyPlan(loaded.root());
}

} // namespace mega
