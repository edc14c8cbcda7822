//===- EmitPlan.cpp -------------------------------------------------------===//
#include "passes/EmitPlan.h"

#include "dialects/exec/Exec.h"
#include "dialects/pipe/Pipe.h"
#include "dialects/tfm/Tfm.h"
#include "runtime/plan/DataInputs.h"
#include "runtime/plan/SequenceOrder.h"

#include "llvm/ADT/StringMap.h"

#include <map>

using namespace mlir;
using namespace mega;

namespace {

/// Thread stacks, library buffers and code: what a rank needs beside regions.
constexpr uint64_t kReserveBytes = uint64_t{256} << 20;

class PlanEmitter {
public:
  PlanEmitter(ModuleOp module, plan::PlanT &out) : module(module), out(out) {}

  LogicalResult emit();

private:
  void emitMesh();
  void emitRegions();
  LogicalResult emitFunctions();
  LogicalResult emitFunction(exec::FunctionOp function);
  LogicalResult emitProgram(pipe::ProgramOp program);
  void emitSchedules();
  void emitParameters();
  void emitInputs();
  void emitLoss();
  void countFlops();

  plan::Buffer buffer(exec::BufferType type, plan::Space space,
                      StringRef region, int64_t offset);
  LogicalResult functionBuffer(exec::FunctionOp function, Value value,
                               plan::Buffer &result);
  plan::Buffer boundaryBuffer(Type type);
  uint8_t layout(dist::LayoutAttr attr);
  uint32_t location(Location loc);
  plan::Buffer counter(StringRef name);

  ModuleOp module;
  plan::PlanT &out;
  /// By number in the plan.
  std::vector<Layout> layouts;
  llvm::StringMap<uint32_t> regions;
  /// Bytes of one slot of a pool, or of one buffer between stages.
  llvm::StringMap<int64_t> slotBytes;
  /// Bytes of one frame of a pool.
  llvm::StringMap<int64_t> frames;
  llvm::StringMap<uint32_t> functions;
  llvm::StringMap<uint32_t> programs;
  std::map<std::string, uint32_t> locations;
};

/// `line:column` in Plan.source, looking through names and fusions. Not the
/// file: the plan of a model does not depend on where its text lies.
std::string describe(Location loc) {
  std::string text = "?";
  loc->walk([&](Location inner) {
    if (auto file = dyn_cast<FileLineColLoc>(inner)) {
      text = fmt::format("{}:{}", file.getLine(), file.getColumn());
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return text;
}

/// The layout of the gradient of a parameter of `type`.
dist::LayoutAttr dualLayout(Type type) {
  return dist::LayoutAttr::get(type.getContext(), *dist::layoutIn(type).dual());
}

uint32_t PlanEmitter::location(Location loc) {
  const auto [it, inserted] = locations.try_emplace(
      describe(loc), static_cast<uint32_t>(out.locations.size()));
  if (inserted) {
    out.locations.push_back(it->first);
  }
  return it->second;
}

plan::Buffer PlanEmitter::buffer(exec::BufferType type, plan::Space space,
                                 StringRef region, int64_t offset) {
  const BufferType plain = type.plain();
  plan::Buffer result;
  result.mutate_space(static_cast<uint8_t>(space));
  result.mutate_data_type(static_cast<uint8_t>(plain.type));
  result.mutate_rank(static_cast<uint8_t>(plain.rank));
  for (int i = 0; i < BufferType::kMaxRank; ++i) {
    result.mutable_dims()->Mutate(i, plain.dims[i]);
  }
  result.mutate_row_stride(plain.rowStride);
  if (space == plan::Space::Region) {
    result.mutate_region(regions.lookup(region));
  }
  result.mutate_offset(offset);
  result.mutate_layout(layout(type.getLayout()));
  return result;
}

/// Number of a layout in the plan; 0 is invariant.
uint8_t PlanEmitter::layout(dist::LayoutAttr attr) {
  const Layout layout = attr ? attr.getLayout() : Layout();
  const auto it = llvm::find(layouts, layout);
  const auto number = static_cast<uint8_t>(it - layouts.begin());
  if (it != layouts.end()) {
    return number;
  }
  layouts.push_back(layout);
  constexpr uint8_t kReserved[3] = {};
  plan::LayoutDimension dims[Layout::kMaxRank];
  uint8_t zigzag = 0;
  for (auto [d, dim] : llvm::enumerate(layout.dims)) {
    zigzag |= static_cast<uint8_t>(dim.zigzag ? 1U << d : 0U);
  }
  for (auto [dim, entry] : llvm::zip(layout.dims, dims)) {
    entry.mutate_padded(dim.padded);
    entry.mutate_count(dim.count);
    for (int i = 0; i < dim.count; ++i) {
      entry.mutable_axes()->Mutate(
          static_cast<uint16_t>(i),
          static_cast<uint8_t>(dim.axes[static_cast<size_t>(i)]));
    }
  }
  out.layouts.emplace_back(
      flatbuffers::span<const plan::LayoutDimension, Layout::kMaxRank>(dims),
      layout.rank, layout.replicated, layout.partial,
      static_cast<uint8_t>(layout.reduction), zigzag,
      flatbuffers::span<const uint8_t, 3>(kReserved));
  return number;
}

void PlanEmitter::emitMesh() {
  const Mesh mesh = dist::meshOf(module);
  for (int i = 0; i < kAxisCount; ++i) {
    if (mesh.sizes[static_cast<size_t>(i)] > 1) {
      plan::Axis axis;
      axis.mutate_name(static_cast<uint8_t>(i));
      axis.mutate_size(
          static_cast<uint32_t>(mesh.sizes[static_cast<size_t>(i)]));
      out.mesh.push_back(axis);
    }
  }
  layout({});
  for (auto op : module.getOps<exec::GroupOp>()) {
    plan::Group group;
    group.mutate_count(static_cast<uint8_t>(op.getAxes().size()));
    for (auto [index, axis] : llvm::enumerate(op.getAxes())) {
      group.mutable_axes()->Mutate(static_cast<uint16_t>(index),
                                   static_cast<uint8_t>(axis));
    }
    out.groups.push_back(group);
  }
}

void PlanEmitter::emitRegions() {
  for (auto op : module.getOps<exec::RegionOp>()) {
    regions[op.getName()] = static_cast<uint32_t>(out.regions.size());
    slotBytes[op.getName()] = static_cast<int64_t>(op.getSlot().value_or(0));
    auto region = std::make_unique<plan::RegionT>();
    region->part = static_cast<plan::Part>(op.getPart());
    region->name = op.getName().str();
    region->bytes = op.getBytes();
    region->copies = static_cast<uint8_t>(op.getCopies());
    out.regions.push_back(std::move(region));
  }
  for (auto function : module.getOps<exec::FunctionOp>()) {
    if (function.getFrame()) {
      int64_t &frame = frames[("saved." + *function.getBlock()).str()];
      frame = std::max(frame, static_cast<int64_t>(*function.getFrame()));
    }
  }
}

LogicalResult PlanEmitter::functionBuffer(exec::FunctionOp function,
                                          Value value, plan::Buffer &result) {
  const auto type = cast<exec::BufferType>(value.getType());
  Operation *op = value.getDefiningOp();
  if (auto argument = dyn_cast<exec::ArgumentOp>(op)) {
    result = buffer(type, plan::Space::Argument, "", 0);
    result.mutate_region(static_cast<uint32_t>(argument.getNumber()));
    return success();
  }
  if (auto state = dyn_cast<exec::StateOp>(op)) {
    result = buffer(type, plan::Space::Region, state.getRegion(),
                    static_cast<int64_t>(state.getOffset()));
    result.mutate_per_instance(static_cast<int64_t>(state.getPerInstance()));
    if (const auto axes = state.getAxes()) {
      uint8_t mask = 0;
      for (int32_t axis : *axes) {
        mask |= bit(static_cast<mega::Axis>(axis));
      }
      result.mutate_axes(mask);
      result.mutate_per_piece(static_cast<int64_t>(*state.getPerPiece()));
    }
    return success();
  }
  if (auto alloc = dyn_cast<exec::AllocOp>(op)) {
    if (!alloc.getOffset()) {
      return alloc.emitError() << "has no offset; run mega-plan-memory first";
    }
    if (alloc.getSpace() == exec::Space::Scratch) {
      result = buffer(type, plan::Space::Region, "scratch",
                      static_cast<int64_t>(*alloc.getOffset()));
      return success();
    }
    const std::string pool =
        ("saved." + function.getBlock().value_or("")).str();
    result = buffer(type, plan::Space::Region, pool,
                    static_cast<int64_t>(*alloc.getOffset()));
    result.mutate_per_frame(frames.lookup(pool));
    result.mutate_per_slot(slotBytes.lookup(pool));
    return success();
  }
  if (auto slice = dyn_cast<exec::SliceOp>(op)) {
    plan::Buffer source;
    if (failed(functionBuffer(function, slice.getSource(), source))) {
      return failure();
    }
    result = buffer(type, static_cast<plan::Space>(source.space()), "",
                    source.offset() + static_cast<int64_t>(slice.getFirst()) *
                                          byteSize(type.plain().type));
    result.mutate_region(source.region());
    result.mutate_per_instance(source.per_instance());
    result.mutate_per_slot(source.per_slot());
    result.mutate_per_frame(source.per_frame());
    result.mutate_per_micro_batch(source.per_micro_batch());
    return success();
  }
  return op->emitError() << "is no buffer";
}

LogicalResult PlanEmitter::emitFunction(exec::FunctionOp function) {
  functions[function.getSymName()] =
      static_cast<uint32_t>(out.functions.size());
  auto result = std::make_unique<plan::FunctionT>();
  result->name = function.getSymName().str();
  result->flops = function.getFlops().value_or(0);
  llvm::DenseMap<Value, uint16_t> indices;
  for (auto argument : function.getBody().front().getOps<exec::ArgumentOp>()) {
    plan::Buffer type =
        buffer(argument.getResult().getType(), plan::Space::Argument, "", 0);
    type.mutate_region(static_cast<uint32_t>(argument.getNumber()));
    const auto number = static_cast<size_t>(argument.getNumber());
    if (result->arguments.size() <= number) {
      result->arguments.resize(number + 1);
    }
    result->arguments[number] = type;
  }
  for (auto launch : function.getBody().front().getOps<exec::LaunchOp>()) {
    const auto kernel = findKernel(
        std::string_view(launch.getKernel().data(), launch.getKernel().size()));
    plan::Launch entry(static_cast<uint16_t>(*kernel), 0,
                       location(launch.getLoc()),
                       static_cast<uint32_t>(result->operands.size()),
                       static_cast<uint32_t>(result->integers.size()),
                       static_cast<uint32_t>(result->floats.size()));
    for (Value value : launch.getBuffers()) {
      const auto [it, inserted] = indices.try_emplace(
          value, static_cast<uint16_t>(result->buffers.size()));
      if (inserted) {
        if (result->buffers.size() == std::numeric_limits<uint16_t>::max()) {
          return function.emitError() << "has too many buffers";
        }
        plan::Buffer entry;
        if (failed(functionBuffer(function, value, entry))) {
          return failure();
        }
        result->buffers.push_back(entry);
      }
      result->operands.push_back(it->second);
    }
    const ArrayRef<int64_t> terms =
        launch.getTerms().value_or(ArrayRef<int64_t>());
    for (size_t i = 0; i + 2 < terms.size(); i += 3) {
      plan::CoordinateTerm term;
      term.mutate_integer(static_cast<uint32_t>(result->integers.size()) +
                          static_cast<uint32_t>(terms[i]));
      term.mutate_axis(static_cast<uint8_t>(terms[i + 1]));
      term.mutate_coefficient(terms[i + 2]);
      result->terms.push_back(term);
    }
    llvm::append_range(result->integers, launch.integerValues());
    llvm::append_range(result->floats, launch.floatValues());
    result->launches.push_back(entry);
  }
  out.functions.push_back(std::move(result));
  return success();
}

/// The buffer between stages of whichever action.
plan::Buffer PlanEmitter::boundaryBuffer(Type type) {
  plan::Buffer address =
      buffer(exec::BufferType::get(cast<RankedTensorType>(type)),
             plan::Space::Region, "boundary", 0);
  address.mutate_per_slot(slotBytes.lookup("boundary"));
  return address;
}

LogicalResult PlanEmitter::emitProgram(pipe::ProgramOp program) {
  programs[program.getSymName()] = static_cast<uint32_t>(out.programs.size());
  auto result = std::make_unique<plan::ProgramT>();
  result->name = program.getSymName().str();
  result->kind = static_cast<plan::ActionKind>(program.getKind());
  result->part = static_cast<uint32_t>(program.getPart().value_or(0));
  llvm::DenseMap<Value, plan::Buffer> addresses;
  for (Operation &op : program.getBody().front()) {
    if (auto input = dyn_cast<pipe::InputOp>(op)) {
      const auto type = exec::BufferType::get(
          cast<RankedTensorType>(input.getResult().getType()));
      for (auto declared : module.getOps<exec::InputOp>()) {
        if (declared.getName() == input.getName()) {
          plan::Buffer address =
              buffer(type, plan::Space::Region, "inputs",
                     static_cast<int64_t>(*declared.getOffset()));
          if (!input.getAll()) {
            address.mutate_per_micro_batch(type.bytes());
          }
          addresses[input.getResult()] = address;
        }
      }
    } else if (auto value = dyn_cast<pipe::CounterOp>(op)) {
      addresses[value.getResult()] = counter(value.getName());
    } else if (auto boundary = dyn_cast<pipe::BoundaryOp>(op)) {
      addresses[boundary.getResult()] =
          boundaryBuffer(boundary.getResult().getType());
    } else if (isa<pipe::LeaveOp>(op)) {
      // PlanMemory placed what leaves.
    } else if (auto call = dyn_cast<pipe::CallOp>(op)) {
      plan::Call entry(functions.lookup(call.getCallee()),
                       static_cast<uint32_t>(call.getCount()),
                       static_cast<uint32_t>(call.getApplication()),
                       static_cast<uint32_t>(call.getInstance()),
                       static_cast<uint32_t>(call.firstFrame()),
                       static_cast<uint32_t>(result->arguments.size()),
                       call.getReverse() ? 1 : 0);
      for (Value argument : call.getArguments()) {
        result->arguments.push_back(addresses.lookup(argument));
      }
      for (unsigned i = 0; i < call.getNumResults(); ++i) {
        const Type type = call.getResult(i).getType();
        const int64_t offset = (*call.getCarry())[i];
        plan::Buffer address =
            offset < 0
                ? boundaryBuffer(type)
                : buffer(exec::BufferType::get(cast<RankedTensorType>(type)),
                         plan::Space::Region, "carry", offset);
        addresses[call.getResult(i)] = address;
        if (!call.takesOver(i)) {
          result->arguments.push_back(address);
        }
      }
      result->calls.push_back(entry);
    } else {
      return op.emitError() << "has no place in a plan";
    }
  }
  out.programs.push_back(std::move(result));
  return success();
}

void PlanEmitter::emitSchedules() {
  for (auto schedule : module.getOps<pipe::ScheduleOp>()) {
    auto entry = std::make_unique<plan::EntryPointT>();
    entry->name = schedule.getSymName().str();
    entry->micro_batches = static_cast<uint32_t>(schedule.getMicroBatches());
    auto stage = std::make_unique<plan::StageT>();
    const ArrayRef<int32_t> actions = schedule.getActions();
    for (size_t i = 0; i + 3 < actions.size(); i += 4) {
      const auto name =
          cast<FlatSymbolRefAttr>(schedule.getPrograms()[actions[i]]);
      stage->actions.emplace_back(programs.lookup(name.getValue()),
                                  static_cast<uint32_t>(actions[i + 1]),
                                  static_cast<uint32_t>(actions[i + 2]),
                                  static_cast<uint32_t>(actions[i + 3]));
    }
    entry->stages.push_back(std::move(stage));
    out.entry_points.push_back(std::move(entry));
  }
}

void PlanEmitter::emitParameters() {
  for (auto bucket : module.getOps<tfm::BucketOp>()) {
    for (auto member : bucket.getBody().front().getOps<tfm::MemberOp>()) {
      const RankedTensorType whole = cast<RankedTensorType>(member.getType());
      RankedTensorType tensor = dist::localType(whole, dist::meshOf(module));
      const Type stored = tensor.getElementType();
      const auto first = static_cast<int64_t>(member.getOffset());
      // The member as `element`, from that element of the region on.
      const auto place = [&](StringRef region, Type element, int64_t from) {
        const auto type = exec::BufferType::get(tensor.clone(element));
        const int64_t bytes = byteSize(type.plain().type);
        auto address = std::make_unique<plan::Buffer>(
            buffer(type, plan::Space::Region, region, from * bytes));
        address->mutate_per_instance(static_cast<int64_t>(member.getStride()) *
                                     bytes);
        return address;
      };
      for (auto [index, prefix] : llvm::enumerate(member.getPrefixes())) {
        auto parameter = std::make_unique<plan::ParameterT>();
        parameter->prefix = cast<StringAttr>(prefix).str();
        parameter->name = member.getLogical().str();
        parameter->first_index =
            static_cast<uint32_t>(member.getRuns()[3 * index]);
        parameter->first_instance =
            static_cast<uint32_t>(member.getRuns()[3 * index + 1]);
        parameter->count =
            static_cast<uint32_t>(member.getRuns()[3 * index + 2]);
        for (int64_t extent : whole.getShape()) {
          parameter->shape.push_back(static_cast<uint64_t>(extent));
        }
        parameter->initializer =
            static_cast<plan::Initializer>(member.getInitializer());
        parameter->value = member.getValueAttr().getValueAsDouble();
        parameter->decay = bucket.getDecay();
        parameter->weight = place("parameters", stored, first);
        parameter->gradient = place("gradients", stored, first);
        parameter->gradient->mutate_layout(layout(dualLayout(whole)));
        if (const auto compute = bucket.getCompute()) {
          parameter->compute =
              place("weights", *compute, bucket.toCompute(first));
        }
        out.parameter_count +=
            static_cast<uint64_t>(whole.getNumElements()) * parameter->count;
        out.parameters.push_back(std::move(parameter));
      }
    }
  }
}

void PlanEmitter::emitInputs() {
  for (auto input : module.getOps<exec::InputOp>()) {
    const auto type = cast<exec::BufferType>(input.getType());
    auto result = std::make_unique<plan::InputT>();
    result->name = input.getName().str();
    result->limit = static_cast<uint64_t>(input.getLimit());
    result->buffer = std::make_unique<plan::Buffer>(
        buffer(type, plan::Space::Region, "inputs",
               static_cast<int64_t>(*input.getOffset())));
    result->buffer->mutate_per_micro_batch(type.bytes());
    if (isTokenInput(result->name)) {
      const Layout layout =
          type.getLayout() ? type.getLayout().getLayout() : Layout();
      if (layout.shardedDim(mega::Axis::Cp) >= 0) {
        const SequenceOrder order = layout.dims[1].zigzag
                                        ? SequenceOrder::Zigzag
                                    : out.packed ? SequenceOrder::Balanced
                                                 : SequenceOrder::Contiguous;
        out.sequence_order = static_cast<uint8_t>(order);
      }
      out.vocabulary =
          std::max(out.vocabulary, static_cast<uint32_t>(result->limit));
    }
    out.inputs.push_back(std::move(result));
  }
}

plan::Buffer PlanEmitter::counter(StringRef name) {
  for (auto declared : module.getOps<exec::CounterOp>()) {
    if (declared.getName() == name) {
      return buffer(cast<exec::BufferType>(declared.getType()),
                    plan::Space::Region, "counters",
                    static_cast<int64_t>(declared.getOffset()));
    }
  }
  return {};
}

void PlanEmitter::emitLoss() {
  for (auto term : module.getOps<exec::LossTermOp>()) {
    auto result = std::make_unique<plan::LossTermT>();
    result->name = term.getName().str();
    result->weight = term.getWeightAttr().getValueAsDouble();
    result->sum = std::make_unique<plan::Buffer>(
        counter((term.getName() + ".sum").str()));
    result->count = std::make_unique<plan::Buffer>(
        counter((term.getName() + ".count").str()));
    out.ignore_label = static_cast<int32_t>(term.getIgnore());
    out.loss_terms.push_back(std::move(result));
  }
  out.gradient_square_sum =
      std::make_unique<plan::Buffer>(counter("gradient_square_sum"));
}

/// What one step executes: forward and backward of all micro-batches, with what
/// attention and head recompute.
void PlanEmitter::countFlops() {
  const plan::EntryPointT &train = *out.entry_points.front();
  for (const plan::Action &action : train.stages.front()->actions) {
    for (const plan::Call &call : out.programs[action.program()]->calls) {
      out.flops_per_step +=
          out.functions[call.function()]->flops * uint64_t{call.count()};
    }
  }
}

LogicalResult PlanEmitter::emit() {
  emitMesh();
  emitRegions();
  for (auto function : module.getOps<exec::FunctionOp>()) {
    if (failed(emitFunction(function))) {
      return failure();
    }
  }
  for (auto program : module.getOps<pipe::ProgramOp>()) {
    if (failed(emitProgram(program))) {
      return failure();
    }
  }
  emitSchedules();
  emitParameters();
  emitInputs();
  emitLoss();
  countFlops();
  return success();
}

} // namespace

FailureOr<plan::PlanT> mega::emitPlan(ModuleOp module,
                                      const CompileOptions &options,
                                      StringRef flags, StringRef source) {
  plan::PlanT out;
  out.compiler = MEGA_VERSION;
  out.options = flags.str();
  out.source = source.str();
  out.model = module.getSymName().value_or("model").str();
  out.micro_batch_size = static_cast<uint32_t>(options.microBatch);
  out.global_batch_size = static_cast<uint32_t>(options.globalBatch());
  out.sequence_length = static_cast<uint32_t>(options.sequence);
  out.packed = module->hasAttr(tfm::kPackedAttrName);
  out.reserve_bytes = kReserveBytes;
  if (failed(PlanEmitter(module, out).emit())) {
    return failure();
  }
  return out;
}
