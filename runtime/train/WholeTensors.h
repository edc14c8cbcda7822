//===- WholeTensors.h - Logical tensors and the ranks' pieces ---*- C++ -*-===//
//
// Puts a whole tensor together from the pieces that ranks have of it, and cuts
// one into them: what dumps and checkpoints hold does not depend on the mesh.
//
// Of each element one rank tells: of the ranks with the same piece, the one
// with coordinate 0 on the other axes; of ranks that share the update of a
// vector, the one that owns the element, as weights in f32 may be old on the
// others. The whole is put together by the
// process with rank 0, the root, to which the others send.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TRAIN_WHOLETENSORS_H
#define MEGA_RUNTIME_TRAIN_WHOLETENSORS_H

#include "runtime/train/LocalRanks.h"

#include <span>
#include <vector>

namespace mega {

/// What a logical parameter has a tensor of.
enum class ParameterPart { Weight, Gradient, Moment, Variance };

class WholeTensors {
public:
  /// `everyone` connects all ranks of the plan; null if all are local.
  WholeTensors(LocalRanks &ranks, Communicator *everyone);

  /// Whether gather() gives the whole here.
  bool isRoot() const { return ranks.first().rank() == 0; }
  /// Logical parameters, as the first rank has them.
  const std::vector<ParameterState> &parameters() const {
    return ranks.first().parameters();
  }
  /// The tensor of parameter number `index`, row-major in its logical shape;
  /// empty but at the root. All processes call it, in the same order, between
  /// steps. The memory is the next call's.
  StatusOr<std::span<const float>> gather(size_t index, ParameterPart part);
  /// Gives all local ranks their pieces of `whole`, padding being 0.
  void cut(size_t index, ParameterPart part, std::span<const float> whole);

private:
  /// The elements of its piece that `rank` tells of.
  FlatRange toldBy(const LogicalParameter &parameter, int64_t rank) const;
  /// Puts `values`, elements `range` of the rank's piece, into `whole`.
  void put(const LogicalParameter &parameter, int64_t rank, FlatRange range,
           const float *values);

  LocalRanks &ranks;
  Communicator *everyone;
  std::vector<OptimizerRange> ranges;
  std::vector<float> whole;
  std::vector<float> received;
};

} // namespace mega

#endif // MEGA_RUNTIME_TRAIN_WHOLETENSORS_H
