//===- Layout.h - The layout calculus ---------------------------*- C++ -*-===//
//
// Where the pieces of a tensor are. Per mesh axis a tensor is in one of four
// states; the state of its gradient is the dual:
//
//   invariant    same value everywhere, gradient already summed   -> invariant
//   replicated   same value, each rank uses it differently        -> partial
//   shard        a dimension is split                             -> shard
//   partial      the true value is the sum over the axis          -> replicated
//
// A layout holds for every dimension the ordered axes that split it, major to
// minor, and the sets of replicated and partial axes; all other axes are
// invariant. One canonical form: axis sets are bit masks, an axis occurs once,
// nothing sharded means no dimensions stored.
//
// A plain value without heap storage: dialects use it inside an attribute.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_LAYOUT_H
#define MEGA_RUNTIME_PLAN_LAYOUT_H

#include "runtime/plan/Shape.h"
#include "runtime/plan/Status.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mega {

/// Mesh axes, fastest varying first, so that rank numbers agree with
/// Megatron's default order. `pp` is placement, never part of a layout. With
/// fewer key/value heads than tensor-parallel ranks, tp is two axes: heads are
/// cut over the major one, `tp:0`, and replicated over the minor one, `tp:1`;
/// `tp` itself has size 1 then.
enum class Axis : uint8_t {
  Tp = 0,
  TpMinor = 1,
  TpMajor = 2,
  Cp = 3,
  Dp = 4,
  Pp = 5,
  Ep = 6
};
inline constexpr int kAxisCount = 7;
/// The axes that tensor parallelism is made of, major to minor.
inline constexpr std::array<Axis, 3> kTpAxes = {Axis::TpMajor, Axis::TpMinor,
                                                Axis::Tp};
/// The axis in a set of axes.
constexpr uint8_t bit(Axis axis) {
  return static_cast<uint8_t>(1u << static_cast<int>(axis));
}
constexpr bool isTp(Axis axis) { return axis <= Axis::TpMajor; }
std::string_view name(Axis axis);
std::optional<Axis> findAxis(std::string_view name);

/// Sizes of the mesh axes; 1 where an axis is not used.
struct Mesh {
  std::array<int64_t, kAxisCount> sizes = {1, 1, 1, 1, 1, 1, 1};

  int64_t size(Axis axis) const { return sizes[static_cast<int>(axis)]; }
  /// Of the product of several axes.
  int64_t size(std::span<const Axis> axes) const;
  /// The tensor-parallel degree, however many axes it is made of.
  int64_t tp() const {
    return size(Axis::Tp) * size(Axis::TpMinor) * size(Axis::TpMajor);
  }
  int64_t ranks() const;
  /// Where `rank`, of 0 .. ranks() - 1, is on `axis`: 0 .. size(axis) - 1. The
  /// number of a rank is tp + size(tp) * (cp + size(cp) * (dp + size(dp) *
  /// pp)), tp being tp:1 + size(tp:1) * tp:0 where it is two axes. Not for ep,
  /// which regroups the ranks of other axes.
  int64_t coordinate(int64_t rank, Axis axis) const;
  /// Its coordinates on `axes`, major to minor, as digits: 0 .. size(axes) - 1.
  int64_t place(int64_t rank, std::span<const Axis> axes) const;
  /// The size(axis) ranks that differ from `rank` on `axis` only, itself among
  /// them, by their coordinate and so in increasing order: the members of one
  /// collective over `axis`. Not for ep.
  std::vector<int64_t> group(int64_t rank, Axis axis) const;
  friend bool operator==(const Mesh &, const Mesh &) = default;
};

enum class State : uint8_t { Invariant, Replicated, Shard, Partial };
std::string_view name(State state);

/// The state of the gradient of a value in `state`.
constexpr State dual(State state) {
  return state == State::Replicated ? State::Partial
         : state == State::Partial  ? State::Replicated
                                    : state;
}

/// What a partial value is combined with. Only sums have a dual.
enum class Reduction : uint8_t { Sum = 0, Max = 1, Min = 2, Or = 3 };
std::string_view name(Reduction reduction);

struct Layout {
  static constexpr int kMaxRank = BufferType::kMaxRank;

  /// The axes that split one dimension, major to minor.
  struct Dimension {
    uint8_t count = 0;
    std::array<Axis, kAxisCount> axes = {};
    /// Whether the pieces of cp, the major axis, are zigzag (SequenceOrder.h).
    bool zigzag = false;
    /// Extent after padding; 0 when it equals the logical one.
    int64_t padded = 0;

    std::span<const Axis> list() const { return std::span(axes).first(count); }
    void push(Axis axis) { axes[count++] = axis; }
    /// Takes `axis` out, and what only holds with it.
    void remove(Axis axis);
    friend bool operator==(const Dimension &, const Dimension &) = default;
  };

  /// Rank of the tensor when a dimension is sharded or padded, else 0.
  uint8_t rank = 0;
  std::array<Dimension, kMaxRank> dims = {};
  /// Bit per axis.
  uint8_t replicated = 0;
  uint8_t partial = 0;
  Reduction reduction = Reduction::Sum;

  State state(Axis axis) const;
  /// The dimension that `axis` splits, or -1.
  int shardedDim(Axis axis) const;
  bool isInvariant() const { return *this == Layout(); }

  /// Every axis in its dual state; refused for max, min and or.
  StatusOr<Layout> dual() const;

  /// The layout of a tensor made of the dimensions `picked` of this one, in
  /// their order.
  Layout select(std::span<const int> picked) const;

  /// How many pieces dimension `dim` is cut into.
  int64_t shards(int dim, const Mesh &mesh) const;
  /// Which of them `rank` holds: its coordinates on the dimension's axes as
  /// digits, the major axis first.
  int64_t shard(int dim, const Mesh &mesh, int64_t rank) const;
  /// Elements of one piece of a dimension of `extent`, padding included: the
  /// tensor is the pieces in order, cut off after `extent`; of a zigzag, the
  /// runs of the pieces.
  int64_t localExtent(int dim, int64_t extent, const Mesh &mesh) const;
  /// The rules that need sizes: axes have more than one rank, every dimension
  /// (padded, if it is) divides into its pieces.
  Status verify(const Mesh &mesh, std::span<const int64_t> shape) const;

  /// The rules that need no mesh: an axis occurs once, canonical spelling,
  /// `tensorRank` dimensions when any is stored.
  Status verify(int tensorRank) const;

  /// `[{tp}, {}], replicated = {dp}`: the text inside `#dist.layout<...>`.
  std::string str() const;

  friend bool operator==(const Layout &, const Layout &) = default;
};

//===----------------------------------------------------------------------===//
// Conversions between states (one axis at a time).
//===----------------------------------------------------------------------===//

enum class Conversion : uint8_t {
  None,
  Replicate,
  AssumeInvariant,
  Slice,
  ToPartial,
  AllGather,
  AllToAll,
  AllReduce,
  ReduceScatter,
};
std::string_view name(Conversion conversion);

/// The conversion that takes a value from `from` to `to`; nothing when there
/// is none (partial to partial). Shard to shard means another dimension.
std::optional<Conversion> conversion(State from, State to);

/// What one conversion does to a layout: the axes that change their state, all
/// in the same way.
struct LayoutChange {
  Conversion conversion = Conversion::None;
  /// In the order of the dimension they leave or enter, major to minor; sets in
  /// mesh order.
  std::vector<Axis> axes;
  /// The dimension they stop splitting, and that they begin to split; or -1.
  int fromDim = -1;
  int toDim = -1;
  /// Whether they split it in a zigzag.
  bool fromZigzag = false;
  bool toZigzag = false;
};

/// The change from one layout of a tensor to another; None between equal
/// layouts. Refused if no single conversion makes it: axes that change in
/// different ways; partial to partial; axes that are not the minor-most of
/// their dimension, before or after; another order or another padding of a
/// dimension that stays split; a zigzag and another axis at once.
StatusOr<LayoutChange> changeBetween(const Layout &from, const Layout &to);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_LAYOUT_H
