//===- Plan.h - The plan's schema as C++ ------------------------*- C++ -*-===//
//
// The generated classes of plan.fbs (namespace mega::plan; PlanT and friends
// own, Plan and friends point into a file), and what everyone who reads or
// writes a plan needs: buffer types, spans over vectors.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_PLAN_H
#define MEGA_RUNTIME_PLAN_PLAN_H

#include "runtime/plan/Shape.h"
#include "runtime/plan/plan_schema.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#include "runtime/plan/plan_generated.h"
#pragma GCC diagnostic pop

#include <span>
#include <string_view>

namespace mega {

/// Plan.version. Raised by any change of plan.fbs but appended enumerators.
inline constexpr uint32_t kPlanVersion = 4;

/// Every region starts at a multiple of this and takes a multiple of it.
inline constexpr int64_t kRegionAlignment = 256;

/// A vector of structs or numbers; empty when the field is absent.
template <typename T>
std::span<const T> elements(const flatbuffers::Vector<const T *> *structs) {
  return structs ? std::span(reinterpret_cast<const T *>(structs->Data()),
                             structs->size())
                 : std::span<const T>();
}
template <typename T>
std::span<const T> elements(const flatbuffers::Vector<T> *numbers) {
  return numbers ? std::span<const T>(numbers->data(), numbers->size())
                 : std::span<const T>();
}

/// Length of a vector that may be absent.
template <typename T> uint32_t length(const flatbuffers::Vector<T> *vector) {
  return vector ? vector->size() : 0;
}

inline std::string_view text(const flatbuffers::String *string) {
  return string ? string->string_view() : std::string_view();
}

/// Element type, shape and row stride of `buffer`.
inline BufferType bufferType(const plan::Buffer &buffer) {
  BufferType type;
  type.type = static_cast<DataType>(buffer.data_type());
  type.rank = buffer.rank();
  for (int i = 0; i < BufferType::kMaxRank; ++i) {
    type.dims[i] = buffer.dims()->Get(i);
  }
  type.rowStride = buffer.row_stride();
  return type;
}

/// A buffer of `type` at `offset` of `region`; strides 0, layout 0.
inline plan::Buffer makeBuffer(plan::Space space, uint32_t region,
                               const BufferType &type, int64_t offset = 0) {
  static constexpr uint8_t kNoBytes[7] = {};
  return plan::Buffer(
      static_cast<uint8_t>(space), static_cast<uint8_t>(type.type),
      static_cast<uint8_t>(type.rank), 0, region,
      flatbuffers::span<const int64_t, 4>(type.dims), type.rowStride, offset, 0,
      0, 0, 0, 0, 0, flatbuffers::span<const uint8_t, 7>(kNoBytes));
}

/// Pipeline stages of a whole plan, and what one of them executes.
inline int64_t stageCount(const plan::Plan &plan) {
  return plan.stages() ? plan.stages()->size() : 1;
}
inline const plan::Plan &stagePlan(const plan::Plan &plan, int64_t stage) {
  return plan.stages() ? *plan.stages()->Get(static_cast<uint32_t>(stage))
                       : plan; // NOLINT(bugprone-*): a view, never made here
}

/// What runs a part of the model, of one micro-batch.
inline bool isRun(plan::ActionKind kind) {
  return kind == plan::ActionKind::Forward ||
         kind == plan::ActionKind::Backward || kind == plan::ActionKind::Weight;
}
inline bool isGradient(plan::ActionKind kind) {
  return isRun(kind) && kind != plan::ActionKind::Forward;
}
inline bool isPerMicroBatch(plan::ActionKind kind) {
  return isRun(kind) || kind == plan::ActionKind::Transfer;
}

/// Bytes the runtime allocates for `region`, copies included.
inline uint64_t allocatedBytes(const plan::Region &region) {
  const uint64_t aligned = (region.bytes() + kRegionAlignment - 1) /
                           kRegionAlignment * kRegionAlignment;
  return aligned * region.copies();
}

/// Planned memory of a rank of one stage: the sum over all regions.
inline uint64_t allocatedBytes(const plan::Plan &plan) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < length(plan.regions()); ++i) {
    sum += allocatedBytes(*plan.regions()->Get(i));
  }
  return sum;
}

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_PLAN_H
