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

/// A logical parameter, and the first stage that has it.
struct WholeTensor {
  LogicalParameter info;
  int64_t stage = 0;
  /// Among the parameters of each stage, -1 where a stage has it not.
  std::vector<int64_t> indices;
};

class WholeTensors {
public:
  /// `everyone` connects all ranks of `plan`; null if all are local.
  WholeTensors(const plan::Plan &plan, LocalRanks &ranks,
               Communicator *everyone);

  /// Whether gather() gives the whole here.
  bool isRoot() const { return ranks.first().rank() == 0; }
  /// Logical parameters of all stages.
  const std::vector<WholeTensor> &tensors() const { return all; }
  /// The tensor of parameter number `index`, row-major in its logical shape;
  /// empty but at the root. All processes call it, in the same order, between
  /// steps. The memory is the next call's.
  StatusOr<std::span<const float>> gather(size_t index, ParameterPart part);
  /// Gives all local ranks their pieces of `whole`, padding being 0.
  void cut(size_t index, ParameterPart part, std::span<const float> whole);

private:
  /// The elements of its piece that `rank`, of the tensor's stage, tells of.
  FlatRange toldBy(const WholeTensor &tensor, int64_t rank) const;
  /// Puts `values`, elements `range` of the rank's piece, into `whole`.
  void put(const LogicalParameter &parameter, int64_t rank, FlatRange range,
           const float *values);

  LocalRanks &ranks;
  Communicator *everyone;
  std::vector<WholeTensor> all;
  /// By stage.
  std::vector<std::vector<OptimizerRange>> ranges;
  std::vector<float> whole;
  std::vector<float> received;
};

} // namespace mega

#endif // MEGA_RUNTIME_TRAIN_WHOLETENSORS_H
