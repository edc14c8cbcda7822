//===- ShardedTensors.h - Tensors in pieces, and kernels on them -*- C++
//-*-===//
//
// A tensor as the ranks of a mesh hold it, and the kernels run by every rank on
// its own pieces, as a plan runs them: layouts are checked against the kernel's
// sharding rule, and the integers that say where a piece begins come from
// coordinateFactors.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_TEST_RUNTIME_CPU_SHARDEDTENSORS_H
#define MEGA_TEST_RUNTIME_CPU_SHARDEDTENSORS_H

#include "runtime/core/ThreadPool.h"
#include "runtime/plan/KernelSharding.h"
#include "test/runtime/reference/Reference.h"

#include <random>
#include <set>
#include <string>
#include <vector>

namespace mega::test {

using Values = reference::Values;

/// Elements are kept as doubles, which hold those of every type in use.
struct Sharded {
  /// Of the whole.
  BufferType type;
  Layout layout;
  /// By rank.
  std::vector<Values> pieces;

  /// The same pieces, called invariant or replicated: those conversions move
  /// nothing.
  Sharded as(const Layout &other) const { return {type, other, pieces}; }
};

/// A mesh of one axis, tp.
Mesh tpMesh(int64_t ranks);
/// Over tp: 'I', 'R', 'P', or the digit of the dimension that is cut. Dimension
/// `padded` is padded where it does not divide.
Layout tpLayout(char state, const BufferType &type, int64_t ranks,
                int padded = -1);

std::span<const int64_t> shapeOf(const BufferType &type);
/// Of the piece of a rank.
BufferType localType(const BufferType &whole, const Layout &layout,
                     const Mesh &mesh);

class Ranks {
public:
  explicit Ranks(const Mesh &mesh, unsigned seed = 1)
      : mesh(mesh), generator(seed) {}

  /// What the ranks hold of `whole`, rounded to the type: summands are random,
  /// padding is NaN.
  Sharded cut(const BufferType &type, const Layout &layout,
              const Values &whole);
  /// For a kernel to write or to add to.
  Sharded zeros(const BufferType &type, const Layout &layout) const;
  /// The whole of the pieces. Expects replicas to be the same bits.
  Values together(const Sharded &tensor) const;
  Values random(int64_t count);

  /// The layouts of the results; refused if the kernel's rule is not obeyed.
  StatusOr<std::vector<Layout>>
  infer(Kernel kernel, const std::vector<const Sharded *> &read,
        const std::vector<BufferType> &results,
        const std::vector<int64_t> &integers = {}) const;
  /// Runs the kernel on every rank. `operands` are the kernel's, null for
  /// scratch; what it only writes is NaN before. Refused if the layouts are
  /// not legal, invariant told from replicated.
  Status launch(Kernel kernel, const std::vector<Sharded *> &operands,
                const std::vector<int64_t> &integers = {},
                const std::vector<double> &floats = {});
  /// One conversion, by its kernel between threads.
  Sharded convert(const Sharded &x, const Layout &to);

  const Mesh mesh;
  StepScalars scalars;
  int64_t application = 0;
  int64_t firstSample = 0;
  /// What ran.
  std::set<Kernel> launched;

private:
  std::mt19937 generator;
  ThreadPool pool{1};
};

} // namespace mega::test

#endif // MEGA_TEST_RUNTIME_CPU_SHARDEDTENSORS_H
