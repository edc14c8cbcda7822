//===- CheckStages.cpp - The stages of a pipeline belong together ---------===//
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanLayouts.h"

#include <algorithm>
#include <cstring>

namespace mega {
namespace {

template <typename T>
bool equalElements(const flatbuffers::Vector<const T *> *a,
                   const flatbuffers::Vector<const T *> *b) {
  const auto left = elements(a);
  const auto right = elements(b);
  return left.size() == right.size() &&
         (left.empty() ||
          std::memcmp(left.data(), right.data(), left.size_bytes()) == 0);
}

/// What all stages of a plan have in common: ranks of different stages meet in
/// the same groups, and read the same batches.
Status checkSame(const plan::Plan &plan, const plan::Plan &stage) {
  for (const auto &[what, a, b] : {
           std::tuple("micro_batch_size", plan.micro_batch_size(),
                      stage.micro_batch_size()),
           std::tuple("global_batch_size", plan.global_batch_size(),
                      stage.global_batch_size()),
           std::tuple("sequence_length", plan.sequence_length(),
                      stage.sequence_length()),
           std::tuple("vocabulary", plan.vocabulary(), stage.vocabulary()),
           std::tuple("packed", uint32_t{plan.packed()},
                      uint32_t{stage.packed()}),
           std::tuple("sequence_order", uint32_t{plan.sequence_order()},
                      uint32_t{stage.sequence_order()}),
       }) {
    if (a != b) {
      return badInput("its {} is {}, that of the plan {}", what, b, a);
    }
  }
  if (plan.ignore_label() != stage.ignore_label()) {
    return badInput("it ignores label {}, the plan {}", stage.ignore_label(),
                    plan.ignore_label());
  }
  if (!equalElements(plan.mesh(), stage.mesh()) ||
      !equalElements(plan.groups(), stage.groups())) {
    return badInput("its mesh or its groups are not those of the plan");
  }
  return Status::ok();
}

Status checkSameTables(const plan::Plan &first, const plan::Plan &stage) {
  const uint32_t entries = length(first.entry_points());
  const uint32_t terms = length(first.loss_terms());
  const uint32_t inputs = length(first.inputs());
  if (length(stage.entry_points()) != entries ||
      length(stage.loss_terms()) != terms || length(stage.inputs()) != inputs) {
    return badInput("it has {} entry points, {} loss terms and {} inputs, "
                    "stage 0 {}, {} and {}",
                    length(stage.entry_points()), length(stage.loss_terms()),
                    length(stage.inputs()), entries, terms, inputs);
  }
  for (uint32_t i = 0; i < entries; ++i) {
    const plan::EntryPoint &a = *first.entry_points()->Get(i);
    const plan::EntryPoint &b = *stage.entry_points()->Get(i);
    if (text(a.name()) != text(b.name()) ||
        a.micro_batches() != b.micro_batches()) {
      return badInput("entry point {} is {} of {} micro-batches, that of "
                      "stage 0 {} of {}",
                      i, text(b.name()), b.micro_batches(), text(a.name()),
                      a.micro_batches());
    }
  }
  for (uint32_t i = 0; i < terms; ++i) {
    const plan::LossTerm &a = *first.loss_terms()->Get(i);
    const plan::LossTerm &b = *stage.loss_terms()->Get(i);
    if (text(a.name()) != text(b.name()) || a.weight() != b.weight()) {
      return badInput("loss term {} is {} * {}, that of stage 0 {} * {}", i,
                      b.weight(), text(b.name()), a.weight(), text(a.name()));
    }
  }
  for (uint32_t i = 0; i < inputs; ++i) {
    const plan::Input &a = *first.inputs()->Get(i);
    const plan::Input &b = *stage.inputs()->Get(i);
    if (text(a.name()) != text(b.name()) || a.limit() != b.limit() ||
        bufferType(*a.buffer()) != bufferType(*b.buffer())) {
      return badInput("input {} is {}, that of stage 0 {}, or they differ in "
                      "type or limit",
                      i, text(b.name()), text(a.name()));
    }
  }
  return Status::ok();
}

} // namespace

Status checkStages(const plan::Plan &plan) {
  const auto stages = static_cast<int64_t>(plan.stages()->size());
  if (stages < 2 || stages != meshOf(plan).size(Axis::Pp)) {
    return badInput("it has plans for {} stages, its mesh {}", stages,
                    meshOf(plan).size(Axis::Pp));
  }
  if (length(plan.regions()) + length(plan.functions()) +
          length(plan.programs()) + length(plan.entry_points()) +
          length(plan.parameters()) + length(plan.inputs()) +
          length(plan.loss_terms()) + length(plan.locations()) +
          length(plan.layouts()) !=
      0) {
    return badInput("it has stages, and something to execute beside them");
  }
  for (uint32_t s = 0; s < stages; ++s) {
    const plan::Plan &stage = *plan.stages()->Get(s);
    const auto check = [&]() -> Status {
      if (stage.stages() || stage.stage() != s) {
        return badInput("it is the plan of stage {}{}", stage.stage(),
                        stage.stages() ? ", and has stages itself" : "");
      }
      if (length(stage.entry_points()) == 0 || length(stage.inputs()) == 0) {
        return badInput("it has no entry point, or no input");
      }
      MEGA_RETURN_IF_ERROR(checkSame(plan, stage));
      return Status::ok();
    };
    MEGA_RETURN_IF_ERROR_CONTEXT(check(), "stage {}", s);
  }
  return Status::ok();
}

Status checkSameStages(const plan::Plan &plan) {
  for (uint32_t s = 1; s < plan.stages()->size(); ++s) {
    MEGA_RETURN_IF_ERROR_CONTEXT(
        checkSameTables(*plan.stages()->Get(0), *plan.stages()->Get(s)),
        "stage {}", s);
  }
  return Status::ok();
}

} // namespace mega
