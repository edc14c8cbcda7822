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
        frames[function.getBlockAttr()] =
            static_cast<int64_t>(*function.getFrame());
      }
    }
    int64_t carry = 0;
    for (auto program : module.getOps<pipe::ProgramOp>()) {
      carry = std::max(carry, planCarry(program));
    }

    OpBuilder out = OpBuilder::atBlockEnd(module.getBody());
    const auto region = [&](StringRef name, exec::Part part, int64_t bytes,
                            int64_t copies = 1) {
      exec::RegionOp::create(out, module.getLoc(), name, part, bytes, copies);
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
    for (const auto &[block, frame] : frames) {
      region(("saved." + block.getValue()).str(), exec::Part::Pool,
             frame * framesOf(module, block.getValue()));
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

  /// Results of calls live from their call to their last reader; one that
  /// takes over an operand's memory continues that.
  int64_t planCarry(pipe::ProgramOp program) {
    const Positions positions = numberOps(program.getBody().front());
    llvm::DenseMap<Value, size_t> itemOf;
    std::vector<PackItem> items;
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
          itemOf[result] = it->second;
          items[it->second].last = readersEnd(result);
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
        offsets.push_back(packing.offsets[itemOf.lookup(result)]);
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
        frames = std::max(frames, static_cast<int64_t>(call.getInstance()) +
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
