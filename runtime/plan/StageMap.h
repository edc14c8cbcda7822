//===- StageMap.h - What each stage of a pipeline holds ---------*- C++ -*-===//
//
// Read from the plans of the stages themselves: which parts of the model a
// stage runs, and which layers these are. A layer is named by the index of its
// parameters, which is also that of checkpoints and dumps.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_STAGEMAP_H
#define MEGA_RUNTIME_PLAN_STAGEMAP_H

#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace mega {

/// A part of the model, on the stage that runs it.
struct PartPlacement {
  int64_t stage = 0;
  /// Number among the parts of its stage.
  int64_t chunk = 0;
  /// `embed, layers 0-2`. Where a model has several lists of layers, with the
  /// prefix of the list in place of `layers`.
  std::string content;
};

/// By number of the part. A plan without stages is one part.
std::vector<PartPlacement> partPlacements(const plan::Plan &plan);

/// What a stage holds, chunk after chunk: `layers 3-4 | layers 9-10`.
std::string stageContent(const std::vector<PartPlacement> &parts,
                         int64_t stage);

/// Parts on a stage.
int64_t chunkCount(const std::vector<PartPlacement> &parts);

/// The schedule the plan was compiled with, `1f1b`; `one stage` without a
/// pipeline.
std::string scheduleName(const plan::Plan &plan);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_STAGEMAP_H
