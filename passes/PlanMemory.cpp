//===- PlanMemory.cpp -----------------------------------------------------===//
#include "dialects/exec/Exec.h"
#include "dialects/pipe/Pipe.h"
#include "dialects/tfm/Tfm.h"
#include "passes/FunctionLowering.h"
#include "passes/Passes.h"
#include "runtime/plan/Packer.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mega {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

int64_t align(int64_t bytes) {
  return static_cast<int64_t>(llvm::alignTo(bytes, kBufferAlignment));
}

using Positions = llvm::DenseMap<Operation *, int64_t>;

/// Extends the lifetime of `item` over the uses of `value`, looking through
/// slices.
void coverUses(Value value, const Positions &positions, PackItem &item) {
  for (Operation *user : value.getUsers()) {
    if (auto slice = dyn_cast<exec::SliceOp>(user)) {
      coverUses(slice.getResult(), positions, item);
    } else {
      item.first = std::min(item.first, positions.lookup(user));
      item.last = std::max(item.last, positions.lookup(user));
    }
  }
}

/// The number of every op of `body`.
Positions numberOps(Block &body) {
  Positions positions;
  for (auto [index, op] : llvm::enumerate(body)) {
    positions[&op] = static_cast<int64_t>(index);
  }
  return positions;
}

struct PlanMemoryPass : mega::impl::PlanMemoryBase<PlanMemoryPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Builder builder(&getContext());
    int64_t scratch = 0;
    llvm::MapVector<StringAttr, int64_t> frames;
    for (auto function : module.getOps<exec::FunctionOp>()) {
      const int64_t bytes = planScratch(function);
      function.setScratchAttr(builder.getI64IntegerAttr(bytes));
      scratch = std::max(scratch, bytes);
      if (function.getFrame()) {
        int64_t &frame = frames[function.getBlockAttr()];
        frame = std::max(frame, static_cast<int64_t>(*function.getFrame()));
      }
    }
    int64_t carry = 0;
    for (auto program : module.getOps<pipe::ProgramOp>()) {
      carry = std::max(carry, planCarry(program));
    }

    OpBuilder out = OpBuilder::atBlockEnd(module.getBody());
    const auto region = [&](StringRef name, exec::Part part, int64_t bytes,
                            int64_t copies = 1, int64_t slot = 0) {
      exec::RegionOp::create(
          out, module.getLoc(), builder.getStringAttr(name),
          exec::PartAttr::get(&getContext(), part),
          builder.getI64IntegerAttr(bytes), builder.getI64IntegerAttr(copies),
          slot > 0 ? builder.getI64IntegerAttr(slot) : IntegerAttr());
    };
    int64_t elements = 0;
    int64_t owned = 0;
    int64_t copies = 0;
    for (auto bucket : module.getOps<tfm::BucketOp>()) {
      const auto end = static_cast<int64_t>(bucket.getOffset()) +
                       static_cast<int64_t>(bucket.getElements());
      elements = std::max(elements, end);
      owned = std::max(owned, end / static_cast<int64_t>(bucket.getPieces()));
      if (const auto compute = bucket.getCompute()) {
        copies = std::max(copies, bucket.toCompute(end) *
                                      compute->getIntOrFloatBitWidth() / 8);
      }
    }
    for (StringRef name : {"parameters", "gradients"}) {
      region(name, exec::Part::State, align(elements * 4));
    }
    for (StringRef name : {"moments", "variances"}) {
      region(name, exec::Part::State, align(owned * 4));
    }
    if (copies > 0) {
      region("weights", exec::Part::State, align(copies));
    }
    region("constants", exec::Part::State, constantBytes(module));
    region("counters", exec::Part::State, counterBytes(module));
    const auto [slots, buffers] = lastPlaces(module);
    for (const auto &[block, frame] : frames) {
      const int64_t slot = frame * framesOf(module, block.getValue());
      region(("saved." + block.getValue()).str(), exec::Part::Pool,
             slot * (slots + 1), 1, slot);
    }
    if (const int64_t bytes = boundaryBytes(module); bytes > 0) {
      region("boundary", exec::Part::Boundary, bytes * (buffers + 1), 1, bytes);
    }
    region("carry", exec::Part::Carry, carry);
    region("scratch", exec::Part::Scratch, scratch);
    // Two copies: one step's batches are read while the next are loaded.
    region("inputs", exec::Part::Input, planInputs(module), 2);
  }

  int64_t planScratch(exec::FunctionOp function) {
    const Positions positions = numberOps(function.getBody().front());
    SmallVector<exec::AllocOp> allocs;
    std::vector<PackItem> items;
    for (auto alloc : function.getBody().front().getOps<exec::AllocOp>()) {
      if (alloc.getSpace() == exec::Space::Scratch) {
        allocs.push_back(alloc);
        PackItem item{alloc.getResult().getType().bytes(),
                      std::numeric_limits<int64_t>::max(), -1};
        coverUses(alloc.getResult(), positions, item);
        items.push_back(item);
      }
    }
    const Packing packing = pack(items, kBufferAlignment);
    for (auto [alloc, offset] : llvm::zip(allocs, packing.offsets)) {
      alloc.setOffset(offset);
    }
    return packing.bytes;
  }

  /// The largest slot and the largest buffer between stages of any action.
  std::pair<int64_t, int64_t> lastPlaces(ModuleOp module) {
    int64_t slot = 0;
    int64_t buffer = 0;
    for (auto schedule : module.getOps<pipe::ScheduleOp>()) {
      const ArrayRef<int32_t> actions = schedule.getActions();
      for (size_t i = 0; i + 3 < actions.size(); i += 4) {
        slot = std::max<int64_t>(slot, actions[i + 2]);
        buffer = std::max<int64_t>(buffer, actions[i + 3]);
      }
    }
    return {slot, buffer};
  }

  /// Of one buffer between stages.
  int64_t boundaryBytes(ModuleOp module) {
    int64_t bytes = 0;
    module.walk([&](Operation *op) {
      Type type;
      if (auto boundary = dyn_cast<pipe::BoundaryOp>(op)) {
        type = boundary.getResult().getType();
      } else if (auto leave = dyn_cast<pipe::LeaveOp>(op)) {
        type = leave.getValue().getType();
      } else {
        return;
      }
      bytes = std::max(
          bytes,
          align(exec::BufferType::get(cast<RankedTensorType>(type)).bytes()));
    });
    return bytes;
  }

  /// Results of calls live from their call to their last reader; one that
  /// takes over an operand's memory continues that. What leaves in the buffer
  /// between stages, and what came there, is in that.
  int64_t planCarry(pipe::ProgramOp program) {
    const Positions positions = numberOps(program.getBody().front());
    constexpr size_t kBoundary = std::numeric_limits<size_t>::max();
    llvm::DenseMap<Value, size_t> itemOf;
    std::vector<PackItem> items;
    for (auto boundary : program.getBody().front().getOps<pipe::BoundaryOp>()) {
      itemOf[boundary.getResult()] = kBoundary;
    }
    // Back from what leaves to where its memory comes from.
    for (auto leave : program.getBody().front().getOps<pipe::LeaveOp>()) {
      for (Value value = leave.getValue(); value;) {
        itemOf[value] = kBoundary;
        auto call = value.getDefiningOp<pipe::CallOp>();
        const auto number = call ? cast<OpResult>(value).getResultNumber() : 0u;
        value = call && call.takesOver(number) ? call.getArguments()[number]
                                               : Value();
      }
    }
    const auto readersEnd = [&](Value value) {
      int64_t last = positions.lookup(value.getDefiningOp());
      for (Operation *user : value.getUsers()) {
        last = std::max(last, positions.lookup(user));
      }
      return last;
    };
    for (auto call : program.getBody().front().getOps<pipe::CallOp>()) {
      for (unsigned i = 0; i < call.getNumResults(); ++i) {
        Value result = call.getResult(i);
        if (call.takesOver(i)) {
          const auto it = itemOf.find(call.getArguments()[i]);
          if (it == itemOf.end()) {
            call.emitError() << "takes over operand " << i
                             << ", which is no result of a call";
            signalPassFailure();
            return 0;
          }
          const size_t item = it->second;
          itemOf[result] = item;
          if (item != kBoundary) {
            items[item].last = readersEnd(result);
          }
          continue;
        }
        if (itemOf.contains(result)) {
          continue;
        }
        itemOf[result] = items.size();
        items.push_back(
            {exec::BufferType::get(cast<RankedTensorType>(result.getType()))
                 .bytes(),
             positions.lookup(call), readersEnd(result)});
      }
    }
    const Packing packing = pack(items, kBufferAlignment);
    for (auto call : program.getBody().front().getOps<pipe::CallOp>()) {
      SmallVector<int64_t> offsets;
      for (Value result : call.getResults()) {
        const size_t item = itemOf.lookup(result);
        offsets.push_back(item == kBoundary ? -1 : packing.offsets[item]);
      }
      if (!offsets.empty()) {
        call.setCarry(offsets);
      }
    }
    return packing.bytes;
  }

  int64_t constantBytes(ModuleOp module) {
    int64_t bytes = 0;
    module.walk([&](exec::StateOp op) {
      if (op.getRegion() == "constants") {
        bytes = std::max(bytes, align(static_cast<int64_t>(op.getOffset()) +
                                      op.getResult().getType().bytes()));
      }
    });
    return bytes;
  }

  int64_t counterBytes(ModuleOp module) {
    int64_t bytes = 0;
    for (auto counter : module.getOps<exec::CounterOp>()) {
      bytes = std::max(
          bytes, align(static_cast<int64_t>(counter.getOffset()) + int64_t{8}));
    }
    return bytes;
  }

  /// Frames of a block in one slot: its applications in the stage.
  int64_t framesOf(ModuleOp module, StringRef block) {
    int64_t frames = 0;
    module.walk([&](pipe::CallOp call) {
      auto function = module.lookupSymbol<exec::FunctionOp>(call.getCallee());
      if (function && function.getBlock() == block) {
        frames = std::max(frames, call.firstFrame() +
                                      static_cast<int64_t>(call.getCount()));
      }
    });
    return frames;
  }

  int64_t planInputs(ModuleOp module) {
    auto schedule = module.lookupSymbol<pipe::ScheduleOp>("train");
    int64_t bytes = 0;
    for (auto input : module.getOps<exec::InputOp>()) {
      input.setOffset(bytes);
      bytes += align(cast<exec::BufferType>(input.getType()).bytes() *
                     static_cast<int64_t>(schedule.getMicroBatches()));
    }
    return bytes;
  }
};

} // namespace
