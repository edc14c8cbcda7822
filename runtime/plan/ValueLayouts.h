//===- ValueLayouts.h - Layouts of what memory holds ------------*- C++ -*-===//
//
// A value (Values.h) is that of a whole tensor; how the ranks hold it is the
// layout of the buffer it was written to. A buffer that reads it may differ in
// shape (heads for features, a bucket for its parameters) but has to cut it
// alike: nothing but replicate and assume_invariant happens without a launch.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_VALUELAYOUTS_H
#define MEGA_RUNTIME_PLAN_VALUELAYOUTS_H

#include "runtime/plan/CallEffects.h"
#include "runtime/plan/KernelValues.h"
#include "runtime/plan/Layout.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <span>
#include <vector>

namespace mega {

/// The buffer of an operand as its function states it.
const plan::Buffer &bufferOf(const plan::Plan &plan, const Site &site);
/// The layouts of all operands of the site's launch.
std::vector<Layout> layoutsOf(const plan::Plan &plan, const Site &site);

/// Whether buffers agree with what they read.
class Spreads {
public:
  explicit Spreads(const plan::Plan &plan);

  /// Every part of what was read is spread as `buffer` says. Zeros are, however
  /// they were written.
  Status checkRead(const plan::Buffer &buffer, const ReadValue &value) const;
  /// Every rank has all of it.
  Status checkComplete(const ReadValue &value) const;
  /// `buffer` reads `input` as it is laid out.
  Status checkInput(const plan::Buffer &buffer,
                    const plan::Buffer &input) const;
  /// How part of a value is spread after a move to a buffer with `target`: as
  /// it was, if that agrees.
  Spread moved(const Spread &part, const Spread &target) const {
    return agree(part, target).isOk() ? part : target;
  }

private:
  /// Axes in `sliced` may go from whole to cut.
  Status agree(const Spread &written, const Spread &read,
               unsigned sliced = 0) const;

  const Mesh mesh;
  std::vector<Layout> layouts;
};

/// The statistics of a head whose vocabulary is cut. Its sums are each relative
/// to the maximum of their own shard: no summands, until head_rescale made them
/// relative to the largest. The layouts cannot tell, and maxima over a shard
/// and over all have one value, so this follows them.
class VocabularyShards {
public:
  Status check(const ValueLaunch &launch,
               std::span<const Layout> layouts) const;
  void record(const ValueLaunch &launch, std::span<const Value> results,
              std::span<const Layout> layouts);

private:
  /// By maximum: the axes that cut the vocabulary.
  std::map<Value, unsigned> axes;
  /// By sum: its maximum.
  std::map<Value, Value> maxima;
};

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_VALUELAYOUTS_H
