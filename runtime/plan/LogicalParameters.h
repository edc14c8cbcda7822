//===- LogicalParameters.h - A plan's parameters, one by one ----*- C++ -*-===//
//
// A plan states the parameters of a repeated block once. Here they are expanded
// to logical parameters, each with its Hugging Face name, and joined with the
// optimizer state that the plan's AdamW launches keep for them.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_LOGICALPARAMETERS_H
#define MEGA_RUNTIME_PLAN_LOGICALPARAMETERS_H

#include "runtime/plan/CallEffects.h"
#include "runtime/plan/Layout.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/RunSample.h"
#include "runtime/plan/Status.h"
#include "runtime/plan/TensorPiece.h"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace mega {

/// A place in a region.
struct Place {
  uint32_t region = 0;
  int64_t offset = 0;

  friend bool operator==(const Place &, const Place &) = default;
};

struct LogicalParameter {
  std::string name;
  /// Its entry in the plan's table.
  uint32_t entry = 0;
  /// Of the whole parameter.
  std::vector<int64_t> shape;
  Layout layout;
  /// What a rank has of it, padding included.
  int64_t elements = 0;
  plan::Initializer initializer = plan::Initializer::Zeros;
  double value = 0;
  bool decay = false;
  Place weight;
  Place gradient;
  /// The bf16 copy that forward and backward read instead of the weight.
  std::optional<Place> compute;
  /// Of optimizerRanges(plan), the one that updates it; absent in a plan for
  /// eval only.
  std::optional<uint32_t> range;
  /// Where in that range its first element is, in bytes.
  int64_t inRange = 0;
};

/// Name of the `k`-th of the parameters that `parameter` stands for.
std::string logicalName(const plan::Parameter &parameter, uint32_t k);

/// Names that occur more than once in the tables of `plans` (null: no table),
/// and in which of them. Quick: it looks at every name of a deep model.
std::map<std::string, std::set<size_t>>
repeatedNames(std::span<const plan::Plan *const> plans);

/// All parameters of a checked plan, in the plan's order.
std::vector<LogicalParameter> logicalParameters(const plan::Plan &plan);
/// Those of layers that `sample` does not leave out.
std::vector<LogicalParameter> logicalParameters(const plan::Plan &plan,
                                                const RunSample &sample);

/// One AdamW launch of a program. The ranks along some axes may share the work:
/// then rank c of them updates the c-th of equal pieces. Weights and gradients
/// have the whole vector in their region; moments and variances have it as
/// well, or only the rank's own piece.
///
///   weight    [  piece 0  |  piece 1  |  piece 2  ]     on every rank
///   moment                [  piece 1  ]                 on rank 1
struct OptimizerRange {
  /// Operand 0 of the launch.
  Site site;
  Place weight;
  Place gradient;
  Place moment;
  Place variance;
  /// Of the whole vector, of what a rank has of moments and variances, and of
  /// what it updates; all equal unless the ranks along `axes`, major to minor,
  /// share the work.
  int64_t bytes = 0;
  int64_t stateBytes = 0;
  int64_t pieceBytes = 0;
  std::vector<Axis> axes;
  bool decay = false;

  bool isShared() const { return bytes != pieceBytes; }
};
/// The elements of a rank's piece of `parameter` that the rank updates, given
/// the range that holds it and the rank's place on the range's axes.
FlatRange ownedElements(const LogicalParameter &parameter,
                        const OptimizerRange &range, int64_t place);
/// The AdamW launches of all programs of a checked plan, runs expanded.
std::vector<OptimizerRange> optimizerRanges(const plan::Plan &plan);

/// A launch that rounds contiguous f32 to contiguous bf16 in state regions. Of
/// vectors that all ranks of an axis have, each rounds its piece.
struct CopyRange {
  /// Operand 0 of the launch.
  Site site;
  Place source;
  Place target;
  /// Of the whole vector.
  int64_t targetBytes = 0;
};
/// Those of all programs of a checked plan, runs expanded.
std::vector<CopyRange> copyRanges(const plan::Plan &plan);

/// What says where a checked buffer is: `call`'s argument if it is one, else
/// itself.
const plan::Buffer &addressOf(const plan::Program &program,
                              const plan::Call &call,
                              const plan::Buffer &buffer);
/// Address of a checked buffer, `call`'s argument if it is one, in run `run`
/// (0 <= run < call.count; the number of instance and frame), slot and
/// micro-batch 0, and coordinate 0 of the buffer's axis.
Place placeOf(const plan::Program &program, const plan::Call &call,
              const plan::Buffer &buffer, uint32_t run);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_LOGICALPARAMETERS_H
