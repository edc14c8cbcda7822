//===- Applications.h - Block applications of a model -----------*- C++ -*-===//
//
// The applications of all blocks, in program order: the one numbering that
// parameter names, instances, dropout keys and schedules share. Of a stage of a
// pipeline, those of its chunks.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_PASSES_APPLICATIONS_H
#define MEGA_PASSES_APPLICATIONS_H

#include "dialects/tfm/Tfm.h"

#include "llvm/ADT/MapVector.h"
#include "mlir/IR/BuiltinOps.h"

namespace mega {

/// The tfm.model of `module`; null, after an error, unless there is one.
inline tfm::ModelOp findModel(mlir::ModuleOp module) {
  llvm::SmallVector<tfm::ModelOp> models(module.getOps<tfm::ModelOp>());
  if (models.size() == 1) {
    return models.front();
  }
  mlir::InFlightDiagnostic error = module.emitError()
                                   << "has " << models.size()
                                   << " tfm.model ops, expected one";
  for (tfm::ModelOp model : models) {
    error.attachNote(model.getLoc()) << "model defined here";
  }
  return {};
}

/// Applications of one block in a row, by one tfm.call or part of a tfm.repeat.
struct ApplicationRun {
  mlir::Operation *op;
  tfm::BlockOp block;
  /// Number of the first application in the whole model.
  int64_t application;
  /// Number of the first among the applications of its block.
  int64_t instance;
  int64_t count;
  /// Chunk of the stage, and number of the first among the applications of its
  /// block in that chunk.
  int64_t chunk;
  int64_t frame;
  /// Parameters of application i are named `prefix.(index + i).name`; no
  /// prefix and no index when empty.
  std::string prefix;
  int64_t index;
};

class Applications {
public:
  explicit Applications(tfm::ModelOp model) {
    int64_t application = 0;
    int64_t chunk = 0;
    llvm::DenseMap<mlir::Operation *, int64_t> frames;
    llvm::DenseMap<mlir::Attribute, tfm::BlockOp> blockOf;
    const auto append = [&](mlir::Operation *op, mlir::FlatSymbolRefAttr name,
                            llvm::StringRef prefix, int64_t index) {
      tfm::BlockOp &block = blockOf[name];
      if (!block) {
        block =
            mlir::SymbolTable::lookupNearestSymbolFrom<tfm::BlockOp>(op, name);
      }
      int64_t &instance = counts[block];
      if (!list.empty() && list.back().op == op && list.back().block == block) {
        ++list.back().count;
      } else {
        list.push_back({op, block, application, instance, 1, chunk,
                        frames[block], prefix.str(), index});
      }
      ++frames[block];
      ++instance;
      ++application;
    };
    for (mlir::Operation &op : model.getBody().front()) {
      // A part begins where an activation comes in, or where the model does.
      if (llvm::isa<tfm::ReceiveOp>(op) && !list.empty()) {
        ++chunk;
        frames.clear();
      }
      if (auto call = llvm::dyn_cast<tfm::CallOp>(op)) {
        application =
            static_cast<int64_t>(call.getApplication().value_or(application));
        append(&op, call.getCalleeAttr(), "", 0);
      } else if (auto repeat = llvm::dyn_cast<tfm::RepeatOp>(op)) {
        application =
            static_cast<int64_t>(repeat.getApplication().value_or(application));
        for (int64_t i = 0; i < static_cast<int64_t>(repeat.getTimes()); ++i) {
          append(&op, repeat.blockOf(i), repeat.getPrefix(),
                 static_cast<int64_t>(repeat.getFrom()) + i);
        }
      }
    }
  }

  llvm::ArrayRef<ApplicationRun> runs() const { return list; }
  /// Blocks in order of first application.
  llvm::SmallVector<tfm::BlockOp> blocks() const {
    llvm::SmallVector<tfm::BlockOp> result;
    for (const auto &entry : counts) {
      result.push_back(llvm::cast<tfm::BlockOp>(entry.first));
    }
    return result;
  }
  int64_t instances(tfm::BlockOp block) const { return counts.lookup(block); }

private:
  llvm::SmallVector<ApplicationRun> list;
  llvm::MapVector<mlir::Operation *, int64_t> counts;
};

} // namespace mega

#endif // MEGA_PASSES_APPLICATIONS_H
