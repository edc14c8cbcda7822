//===- PackPlan.h - A plan as a flatbuffer ----------------------*- C++ -*-===//
#ifndef MEGA_RUNTIME_PLAN_PACKPLAN_H
#define MEGA_RUNTIME_PLAN_PACKPLAN_H

#include "runtime/plan/Plan.h"

namespace mega {

/// `plan` and its stages; tables and vectors that are equal are written once.
flatbuffers::Offset<plan::Plan>
packShared(flatbuffers::FlatBufferBuilder &builder, const plan::PlanT &plan);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_PACKPLAN_H
