//===- PlanCheck.cpp - Identity, regions, buffers -------------------------===//
#include "runtime/plan/PlanCheck.h"

#include "runtime/plan/PlanLayouts.h"
#include "runtime/plan/SequenceOrder.h"

#include <algorithm>
#include <string>
#include <type_traits>

namespace mega {
namespace {

constexpr size_t kMaxNameLength = 512;

Status checkIdentity(const plan::Plan &plan) {
  if (plan.version() != kPlanVersion) {
    return badInput("the plan has version {}, this build reads {}",
                    plan.version(), kPlanVersion);
  }
  if (plan.schema() != kPlanSchema) {
    return badInput("the plan was written with schema {:016x}, this build "
                    "reads {:016x}: compile the model again",
                    plan.schema(), kPlanSchema);
  }
  MEGA_RETURN_IF_ERROR(checkName("the model's name", text(plan.model())));
  MEGA_RETURN_IF_ERROR(
      checkText("the compiler's version", text(plan.compiler())));
  MEGA_RETURN_IF_ERROR(checkText("the options", text(plan.options())));
  MEGA_RETURN_IF_ERROR(checkText("the source", text(plan.source())));
  constexpr int64_t kMax = (int64_t{1} << 31) - 1;
  MEGA_RETURN_IF_ERROR(
      checkRange("micro_batch_size", plan.micro_batch_size(), 1, kMax));
  MEGA_RETURN_IF_ERROR(
      checkRange("global_batch_size", plan.global_batch_size(), 1, kMax));
  MEGA_RETURN_IF_ERROR(
      checkRange("sequence_length", plan.sequence_length(), 1, kMax));
  MEGA_RETURN_IF_ERROR(checkRange("vocabulary", plan.vocabulary(), 1, kMax));
  return checkRange("reserve_bytes", static_cast<int64_t>(plan.reserve_bytes()),
                    0, kMaxPlanBytes);
}

Status checkMesh(const plan::Plan &plan) {
  bool seen[kAxisCount] = {};
  int64_t ranks = 1;
  for (const plan::Axis &axis : elements(plan.mesh())) {
    MEGA_RETURN_IF_ERROR(
        checkRange("mesh axis", axis.name(), 0, kAxisCount - 1));
    const std::string_view axisName = name(static_cast<Axis>(axis.name()));
    if (std::exchange(seen[axis.name()], true)) {
      return badInput("mesh axis {} occurs twice", axisName);
    }
    MEGA_RETURN_IF_ERROR(checkRange(axisName, axis.size(), 1, 1 << 20));
    if (static_cast<Axis>(axis.name()) == Axis::Ep && axis.size() > 1) {
      return badInput("{} has {} ranks, but regroups those of other axes: a "
                      "plan has none",
                      axisName, axis.size());
    }
    ranks *= axis.size();
    MEGA_RETURN_IF_ERROR(checkRange("ranks of the mesh", ranks, 1, 1 << 20));
    for (uint8_t byte : *axis.reserved()) {
      MEGA_RETURN_IF_ERROR(checkRange("reserved byte of an axis", byte, 0, 0));
    }
  }
  return Status::ok();
}

/// Of a mesh that was checked.
Status checkSequenceOrder(const plan::Plan &plan) {
  MEGA_RETURN_IF_ERROR(checkRange("packed", plan.packed(), 0, 1));
  // Which orders there are depends on who makes them.
  const auto order = static_cast<SequenceOrder>(plan.sequence_order());
  const bool legal = order == SequenceOrder::Contiguous ||
                     (meshOf(plan).size(Axis::Cp) > 1 &&
                      (order == SequenceOrder::Zigzag ||
                       (order == SequenceOrder::Balanced && plan.packed())));
  if (!legal) {
    return badInput(
        "sequence_order is {}, expected 0, or with cp 1 (zigzag) or, "
        "of packed rows, 2 (balanced)",
        plan.sequence_order());
  }
  return Status::ok();
}

Status checkRegions(const plan::Plan &plan) {
  UniqueNames names("region");
  __int128 sum = 0;
  for (uint32_t i = 0; i < length(plan.regions()); ++i) {
    const plan::Region &region = *plan.regions()->Get(i);
    const std::string_view regionName = text(region.name());
    MEGA_RETURN_IF_ERROR(names.add(i, regionName));
    MEGA_RETURN_IF_ERROR_CONTEXT(checkRange("part",
                                            static_cast<int>(region.part()),
                                            static_cast<int>(plan::Part::MIN),
                                            static_cast<int>(plan::Part::MAX)),
                                 "region {}", regionName);
    if (region.bytes() > static_cast<uint64_t>(kMaxPlanBytes)) {
      return badInput("region {} has {} bytes, at most {} are possible",
                      regionName, region.bytes(), kMaxPlanBytes);
    }
    const bool rotates = region.part() == plan::Part::Input ||
                         region.part() == plan::Part::Snapshot;
    MEGA_RETURN_IF_ERROR_CONTEXT(
        checkRange("copies", region.copies(), 1, rotates ? 8 : 1), "region {}",
        regionName);
    sum += allocatedBytes(region);
  }
  if (sum > kMaxPlanBytes) {
    return badInput("the regions add up to more than {} bytes", kMaxPlanBytes);
  }
  return Status::ok();
}

Status checkStrings(const plan::Plan &plan) {
  for (uint32_t i = 0; i < length(plan.locations()); ++i) {
    MEGA_RETURN_IF_ERROR(checkText(fmt::format("location {}", i),
                                   text(plan.locations()->Get(i))));
  }
  return Status::ok();
}

/// flatbuffers::Verifier looks at the alignment of a vector's length only, and
/// elements of 8 bytes are read in place.
template <typename T> bool isAligned(const flatbuffers::Vector<T> *vector) {
  using Element = std::remove_cv_t<std::remove_pointer_t<T>>;
  return !vector ||
         reinterpret_cast<uintptr_t>(vector->Data()) % alignof(Element) == 0;
}

Status checkAlignment(const plan::Plan &plan) {
  bool aligned = isAligned(plan.mesh()) && isAligned(plan.layouts()) &&
                 isAligned(plan.groups());
  for (uint32_t i = 0; i < length(plan.functions()); ++i) {
    const plan::Function &function = *plan.functions()->Get(i);
    aligned &=
        isAligned(function.arguments()) && isAligned(function.buffers()) &&
        isAligned(function.launches()) && isAligned(function.operands()) &&
        isAligned(function.integers()) && isAligned(function.terms()) &&
        isAligned(function.floats());
  }
  for (uint32_t i = 0; i < length(plan.programs()); ++i) {
    const plan::Program &program = *plan.programs()->Get(i);
    aligned &= isAligned(program.calls()) && isAligned(program.arguments());
  }
  for (uint32_t i = 0; i < length(plan.entry_points()); ++i) {
    const plan::EntryPoint &entry = *plan.entry_points()->Get(i);
    for (uint32_t s = 0; s < length(entry.stages()); ++s) {
      aligned &= isAligned(entry.stages()->Get(s)->actions());
    }
  }
  for (uint32_t i = 0; i < length(plan.parameters()); ++i) {
    aligned &= isAligned(plan.parameters()->Get(i)->shape());
  }
  return aligned ? Status::ok()
                 : badInput("a vector of the plan's flatbuffer is not aligned "
                            "to its elements");
}

Status checkShape(const plan::Buffer &buffer) {
  MEGA_RETURN_IF_ERROR(
      checkRange("element type", buffer.data_type(), 0, kDataTypeCount - 1));
  MEGA_RETURN_IF_ERROR(
      checkRange("rank", buffer.rank(), 0, BufferType::kMaxRank));
  int64_t count = 1;
  for (int i = 0; i < BufferType::kMaxRank; ++i) {
    const int64_t extent = buffer.dims()->Get(i);
    const int64_t most =
        i < static_cast<int>(buffer.rank()) ? kMaxPlanBytes / count : 1;
    MEGA_RETURN_IF_ERROR(
        checkRange(fmt::format("dimension {}", i), extent, 1, most));
    count *= extent;
  }
  const BufferType type = bufferType(buffer);
  MEGA_RETURN_IF_ERROR(
      checkRange("row stride", type.rowStride, type.rowSize(), kMaxPlanBytes));
  const __int128 bytes =
      (static_cast<__int128>(type.rows() - 1) * type.rowStride +
       type.rowSize()) *
      byteSize(type.type);
  if (bytes > kMaxPlanBytes) {
    return badInput("{} spans more than {} bytes", toString(type),
                    kMaxPlanBytes);
  }
  return Status::ok();
}

} // namespace

Status checkRange(std::string_view what, int64_t value, int64_t low,
                  int64_t high) {
  if (value < low || value > high) {
    return badInput("{} is {}, expected {} to {}", what, value, low, high);
  }
  return Status::ok();
}

Status checkText(std::string_view what, std::string_view text) {
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0x7f || (byte < 0x20 && c != '\n' && c != '\r' && c != '\t')) {
      return badInput("{} holds control character {}", what, byte);
    }
  }
  return Status::ok();
}

Status checkName(std::string_view what, std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength) {
    return badInput("{} has {} characters, expected 1 to {}", what, name.size(),
                    kMaxNameLength);
  }
  for (char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f) {
      return badInput("{} holds byte {}, expected printable ASCII", what, byte);
    }
  }
  return Status::ok();
}

Status UniqueNames::add(uint32_t number, std::string_view name) {
  MEGA_RETURN_IF_ERROR(
      checkName(fmt::format("name of {} {}", kind, number), name));
  return names.insert(name).second
             ? Status::ok()
             : badInput("two {}s are called {}", kind, name);
}

Status checkBuffer(const plan::Plan &plan, const plan::Buffer &buffer) {
  MEGA_RETURN_IF_ERROR(checkShape(buffer));
  MEGA_RETURN_IF_ERROR(checkRange("space", buffer.space(), 0,
                                  static_cast<int>(plan::Space::MAX)));
  MEGA_RETURN_IF_ERROR(checkBufferLayout(plan, buffer));
  const int64_t size = byteSize(static_cast<DataType>(buffer.data_type()));
  for (const auto &[what, value] :
       {std::pair("offset", buffer.offset()),
        std::pair("per_instance", buffer.per_instance()),
        std::pair("per_slot", buffer.per_slot()),
        std::pair("per_frame", buffer.per_frame()),
        std::pair("per_micro_batch", buffer.per_micro_batch()),
        std::pair("per_piece", buffer.per_piece())}) {
    MEGA_RETURN_IF_ERROR(checkRange(what, value, 0, kMaxPlanBytes));
    if (value % size != 0) {
      return badInput("{} is {}, not a multiple of the {} bytes of an element",
                      what, value, size);
    }
  }
  return Status::ok();
}

/// The number of the last piece that its address depends on.
static uint64_t lastPiece(const plan::Plan &plan, const plan::Buffer &buffer) {
  return static_cast<uint64_t>(meshOf(plan).size(pieceAxes(plan, buffer)) - 1);
}

Status checkPlacement(const plan::Plan &plan, const plan::Buffer &buffer,
                      const AddressLimits &limits) {
  if (buffer.region() >= length(plan.regions())) {
    return badInput("region {} of {}", buffer.region(), length(plan.regions()));
  }
  const plan::Region &region = *plan.regions()->Get(buffer.region());
  const auto product = [](uint64_t count, int64_t stride) {
    return static_cast<__int128>(count) * stride;
  };
  const uint64_t slot =
      region.part() == plan::Part::Boundary ? limits.buffer : limits.slot;
  const __int128 end = product(limits.instance, buffer.per_instance()) +
                       product(slot, buffer.per_slot()) +
                       product(limits.frame, buffer.per_frame()) +
                       product(limits.microBatch, buffer.per_micro_batch()) +
                       product(lastPiece(plan, buffer), buffer.per_piece()) +
                       buffer.offset() + bufferType(buffer).extentBytes();
  if (end > static_cast<__int128>(region.bytes())) {
    const auto shown = static_cast<int64_t>(std::min<__int128>(end, INT64_MAX));
    return badInput("{} ends at byte {} of region {}, which has {} (instance "
                    "{}, slot {}, frame {}, micro-batch {})",
                    toString(bufferType(buffer)), shown, text(region.name()),
                    region.bytes(), limits.instance, slot, limits.frame,
                    limits.microBatch);
  }
  return Status::ok();
}

Status checkPlacedBuffer(const plan::Plan &plan, const plan::Buffer *buffer,
                         const AddressLimits &limits) {
  if (!buffer) {
    return badInput("the buffer is missing");
  }
  MEGA_RETURN_IF_ERROR(checkBuffer(plan, *buffer));
  if (buffer->space() != static_cast<uint8_t>(plan::Space::Region)) {
    return badInput("the buffer is argument {}, expected one in a region",
                    buffer->region());
  }
  return checkPlacement(plan, *buffer, limits);
}

/// A plan for the ranks of one stage.
static Status checkStage(const plan::Plan &plan) {
  MEGA_RETURN_IF_ERROR(checkAlignment(plan));
  MEGA_RETURN_IF_ERROR(checkIdentity(plan));
  MEGA_RETURN_IF_ERROR(checkMesh(plan));
  MEGA_RETURN_IF_ERROR(checkSequenceOrder(plan));
  MEGA_RETURN_IF_ERROR(checkRegions(plan));
  MEGA_RETURN_IF_ERROR(checkStrings(plan));
  MEGA_RETURN_IF_ERROR(checkLayouts(plan));
  MEGA_RETURN_IF_ERROR(checkFunctions(plan));
  MEGA_RETURN_IF_ERROR(checkPrograms(plan));
  MEGA_RETURN_IF_ERROR(checkEntryPoints(plan));
  MEGA_RETURN_IF_ERROR(checkAddresses(plan));
  MEGA_RETURN_IF_ERROR(checkParameters(plan));
  MEGA_RETURN_IF_ERROR(checkInputs(plan));
  return checkLossTerms(plan);
}

Status checkPlan(const plan::Plan &plan) {
  if (!plan.stages()) {
    MEGA_RETURN_IF_ERROR(checkRange("stage", plan.stage(), 0, 0));
    return checkStage(plan);
  }
  MEGA_RETURN_IF_ERROR(checkAlignment(plan));
  MEGA_RETURN_IF_ERROR(checkIdentity(plan));
  MEGA_RETURN_IF_ERROR(checkMesh(plan));
  MEGA_RETURN_IF_ERROR(checkStages(plan));
  for (uint32_t s = 0; s < plan.stages()->size(); ++s) {
    MEGA_RETURN_IF_ERROR_CONTEXT(checkStage(*plan.stages()->Get(s)), "stage {}",
                                 s);
  }
  return checkSameStages(plan);
}

} // namespace mega
