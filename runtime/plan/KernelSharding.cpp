//===- KernelSharding.cpp - Which layouts a launch may have ---------------===//
#include "runtime/plan/KernelSharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

namespace mega {
namespace {

/// In the notation of ShardingRule.h, operands that are read before the arrow.
/// A point stands for as many letters as the first operand with one has further
/// dimensions. No operand is marked as inactive: that only lets it be invariant
/// where others are replicated.
struct Notation {
  Kernel kernel;
  std::string_view text;
};

constexpr Notation kNotations[] = {
    {Kernel::Embedding, "bs, *vh -> bsh"},
    {Kernel::EmbeddingGrad, "bs, *bsh -> vh"},
    {Kernel::AddPositions, "+bsh, +Ph -> bsh"},
    {Kernel::PositionsGrad, "*bsh -> Ph"},
    {Kernel::AddPositionsAt, "+bsh, +Ph, bs -> bsh"},
    {Kernel::PositionsGradAt, "bs, *bsh -> Ph"},
    {Kernel::LayerNorm, "bsF, F, F -> bsF, bs, bs"},
    {Kernel::LayerNormGrad, "*bsF, bsF, F, bs, bs -> bsF, F, F"},
    {Kernel::RmsNorm, ".F, F -> .F, ."},
    {Kernel::RmsNormGrad, "*.F, .F, F, . -> .F, F"},
    {Kernel::AddLayerNorm, "bsF, bsF, F, F -> bsF, bsF, bs, bs"},
    {Kernel::AddRmsNorm, ".F, .F, F -> .F, .F, ."},
    {Kernel::AddBias, "+.o, +o -> .o"},
    {Kernel::BiasGrad, "*.o -> o"},
    {Kernel::BiasGelu, ".o, o -> .o, .o"},
    {Kernel::Gelu, ". -> ."},
    {Kernel::GeluGrad, "*., . -> ."},
    {Kernel::Silu, ". -> ."},
    {Kernel::SiluGrad, "*., . -> ."},
    {Kernel::Gated, "., *. -> ."},
    {Kernel::GatedGrad, "*., ., . -> ., ."},
    {Kernel::Add, "+., +. -> ."},
    {Kernel::Dropout, "*. -> ."},
    // Points stand for a, b, c ...
    {Kernel::DropoutAt, "*., ab, ab -> ."},
    // Rows of the table are positions from 0 on.
    {Kernel::Rope, "*bShD, PD -> bShD"},
    {Kernel::RopeAt, "*bshD, PD, bs -> bshD"},
    // Not linear in v, of which lse is no function.
    {Kernel::Attention, "bShD, bSkD, bSkD -> bShD, bhS | h in k"},
    {Kernel::AttentionGrad, "*bShD, bShD, bSkD, bSkD, bShD, bhS -> "
                            "bShD, bSkD, bSkD | h in k"},
    // Queries know their places; all keys are here.
    {Kernel::PackedAttention, "bshD, bTkD, bTkD, bs, bs, bT, bT -> bshD, bhs "
                              "| h in k"},
    {Kernel::PackedAttentionGrad,
     "*bshD, bshD, bTkD, bTkD, bs, bs, bT, bT, bshD, bhs -> "
     "bshD, bTkD, bTkD | h in k"},
    // Keys of the other ranks come, and their gradients go back.
    {Kernel::RingAttention, "bshD, bskD, bskD, bs, bs, bT, bT -> bshD, bhs "
                            "| h in k"},
    {Kernel::RingAttentionGrad,
     "*bshD, bshD, bskD, bskD, bs, bs, bT, bT, bshD, bhs -> "
     "bshD, bskD, bskD | h in k"},
    {Kernel::HeadStats, "bsI, vI, bs -> ^bs, bs, bs"},
    {Kernel::HeadRescale, "*bs, ~bs, bs -> bs"},
    {Kernel::HeadLoss, "bs, bs, bs, bs -> "},
    {Kernel::HeadLossGrad, "*, bs, bs -> bs, bs"},
    {Kernel::HeadRescaleGrad, "*bs, ~bs, bs -> bs"},
    {Kernel::HeadStatsGrad, "bsI, vI, bs, ~bs, +bs, +bs -> bsI, vI"},
    {Kernel::CountValid, "bs -> "},
    {Kernel::LossSeed, " -> "},
    {Kernel::Copy, "*. -> ."},
    {Kernel::Accumulate, "*. -> ."},
    {Kernel::SumSquares, ". -> "},
    {Kernel::ClipScale, " -> "},
    // What is updated: weight, moment, variance.
    {Kernel::AdamW, "., -> ., ., ."},
    {Kernel::Cast, "*. -> ."},
    {Kernel::Scale, "*. -> ."},
};

/// The kernel's operands as the rule numbers them.
struct Roles {
  std::vector<int> read, written;

  explicit Roles(Kernel kernel) {
    const auto &operands = kernelSpec(kernel).operands;
    for (int i = 0; i < static_cast<int>(operands.size()); ++i) {
      const Access access = operands[static_cast<size_t>(i)].access;
      if (access == Access::Read) {
        read.push_back(i);
      } else if (access != Access::Scratch) {
        written.push_back(i);
      }
    }
  }
};

/// Letters from `first` on.
std::string letters(char first, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += static_cast<char>(first + i);
  }
  return text;
}

bool isFactor(char c) { return c >= 'a' ? c <= 'z' : c >= 'A' && c <= 'Z'; }

/// The notation with letters for points.
std::string expand(std::string_view notation, Kernel kernel,
                   std::span<const BufferType> types) {
  const size_t point = notation.find('.');
  if (point == std::string_view::npos) {
    return std::string(notation);
  }
  const auto operand = static_cast<size_t>(std::count(
      notation.begin(), notation.begin() + static_cast<long>(point), ','));
  const size_t end =
      std::min(notation.find(',', point), notation.find('-', point));
  const auto fixed = static_cast<int>(
      std::count_if(notation.begin() + static_cast<long>(point),
                    notation.begin() + static_cast<long>(end), isFactor));
  const auto index = static_cast<size_t>(Roles(kernel).read[operand]);
  const std::string dims = letters('a', std::max(0, types[index].rank - fixed));
  std::string text;
  for (char c : notation) {
    text += c == '.' ? dims : std::string(1, c);
  }
  return text;
}

/// c (+)= op(a) op(b): rows m and columns n of c, k contracted.
ShardingRule gemmRule(const LaunchSignature &s) {
  const auto side = [&](size_t operand, bool transposed, char rows,
                        char columns) {
    const BufferType &type = s.operands[operand];
    const int count = type.rowDims();
    return letters(transposed ? columns : rows, count) +
           letters(transposed ? rows : columns, type.rank - count);
  };
  // Three letters each: a buffer has at most two dimensions of a kind.
  const std::string a = side(0, s.integers[0] != 0, 'a', 'k');
  const std::string b = side(1, s.integers[1] != 0, 'k', 'p');
  const std::string c = side(2, false, 'a', 'p');
  return ShardingRule::parse("*" + a + ", *" + b + " -> " + c);
}

std::string operandName(Kernel kernel, int operand) {
  return std::string(
      kernelSpec(kernel).operands[static_cast<size_t>(operand)].name);
}

/// The tensors of a rule have as many dimensions as the buffers.
Status checkRanks(const ShardedLaunch &launch, std::span<const int> operands,
                  std::span<const ShardingRule::Tensor> tensors) {
  assert(operands.size() == tensors.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto index = static_cast<size_t>(operands[i]);
    const BufferType &type = launch.signature.operands[index];
    const size_t rank = tensors[i].factors.size();
    // One element may be a vector.
    const bool scalar =
        rank == 0 && type.elements() == 1 && launch.layouts[index].rank == 0;
    if (static_cast<size_t>(type.rank) != rank && !scalar) {
      return badInput("operand {} is {}, its sharding rule is for {} "
                      "dimensions",
                      operandName(launch.kernel, operands[i]), toString(type),
                      rank);
    }
  }
  return Status::ok();
}

/// What kind of piece an integer is the start of.
struct PieceStart {
  Kernel kernel;
  std::string_view integer;
  int operand;
  /// kLastDims: the dimensions of a row as one.
  int dim;
};
constexpr int kLastDims = -1;

constexpr PieceStart kPieceStarts[] = {
    {Kernel::Embedding, "first_row", 1, 0},
    {Kernel::EmbeddingGrad, "first_row", 2, 0},
    {Kernel::AddPositions, "first_position", 0, 1},
    {Kernel::PositionsGrad, "first_position", 0, 1},
    {Kernel::Dropout, "first_position", 0, 1},
    {Kernel::Dropout, "first_feature", 0, kLastDims},
    {Kernel::Attention, "first_head", 0, 2},
    {Kernel::AttentionGrad, "first_head", 1, 2},
    {Kernel::PackedAttention, "first_head", 0, 2},
    {Kernel::PackedAttentionGrad, "first_head", 1, 2},
    {Kernel::DropoutAt, "first_feature", 0, kLastDims},
    {Kernel::RingAttention, "first_head", 0, 2},
    {Kernel::RingAttentionGrad, "first_head", 1, 2},
    {Kernel::HeadStats, "first_row", 1, 0},
    {Kernel::HeadStatsGrad, "first_row", 1, 0},
};

const PieceStart *pieceStart(Kernel kernel, size_t integer) {
  const std::string_view name = kernelSpec(kernel).integers[integer];
  const auto *it = std::find_if(
      std::begin(kPieceStarts), std::end(kPieceStarts), [&](const auto &start) {
        return start.kernel == kernel && start.integer == name;
      });
  return it == std::end(kPieceStarts) ? nullptr : it;
}

} // namespace

Layout whole(Layout layout, const Mesh &mesh) {
  for (int i = 0; i < kAxisCount; ++i) {
    const auto axis = static_cast<Axis>(i);
    if (axis != Axis::Pp && mesh.size(axis) > 1 &&
        layout.state(axis) == State::Invariant) {
      layout.replicated |= bit(axis);
    }
  }
  return layout;
}

StatusOr<ShardingRule> shardingRule(Kernel kernel,
                                    const LaunchSignature &signature) {
  if (kernel == Kernel::Gemm) {
    return gemmRule(signature);
  }
  if (kernel == Kernel::RopeTable) {
    // Of nothing: whole on every rank.
    return ShardingRule{{}, {{"PD"}}};
  }
  const auto *it = std::find_if(
      std::begin(kNotations), std::end(kNotations),
      [&](const Notation &notation) { return notation.kernel == kernel; });
  if (it == std::end(kNotations)) {
    return badInput("{} has no sharding rule", kernelSpec(kernel).name);
  }
  ShardingRule rule =
      ShardingRule::parse(expand(it->text, kernel, signature.operands));
  // No text is one tensor without dimensions, or none.
  const Roles roles(kernel);
  rule.operands.resize(roles.read.size());
  rule.results.resize(roles.written.size());
  return rule;
}

/// Every rank exchanges its piece with the rank of another stage that has the
/// same one. Sums are not moved: their summands would be replicated.
static Status checkBetweenStages(const ShardedLaunch &launch,
                                 const Mesh &mesh) {
  for (const Layout &each : launch.layouts) {
    const Layout layout = whole(each, mesh);
    if (layout.partial != 0 || layout != whole(launch.layouts[0], mesh)) {
      return badInput("x is [{}] and y [{}], expected one layout without sums",
                      whole(launch.layouts[0], mesh).str(), layout.str());
    }
  }
  return Status::ok();
}

Status checkSharding(const ShardedLaunch &launch, const Mesh &mesh) {
  if (launch.kernel == Kernel::Zero || isConversion(launch.kernel)) {
    return Status::ok();
  }
  if (isBetweenStages(launch.kernel)) {
    return checkBetweenStages(launch, mesh);
  }
  MEGA_ASSIGN_OR_RETURN(const ShardingRule rule,
                        shardingRule(launch.kernel, launch.signature));
  const Roles roles(launch.kernel);
  MEGA_RETURN_IF_ERROR(checkRanks(launch, roles.read, rule.operands));
  MEGA_RETURN_IF_ERROR(checkRanks(launch, roles.written, rule.results));
  const auto pick = [&](const std::vector<int> &operands) {
    std::vector<Layout> layouts;
    layouts.reserve(operands.size());
    for (int i : operands) {
      layouts.push_back(whole(launch.layouts[static_cast<size_t>(i)], mesh));
    }
    return layouts;
  };
  const std::vector<Layout> read = pick(roles.read);
  const std::vector<Layout> written = pick(roles.written);
  if (launch.kernel == Kernel::Copy && read[0] == written[0]) {
    // Of maxima too.
    return Status::ok();
  }
  if (read.empty()) {
    const bool invariant =
        std::all_of(written.begin(), written.end(), [](const Layout &layout) {
          return layout.rank == 0 && layout.partial == 0;
        });
    return invariant ? Status::ok()
                     : badInput("what it writes is the same on every rank");
  }
  std::vector<int64_t> groups(read.size());
  for (size_t i = 0; rule.outer != 0 && i < read.size(); ++i) {
    const size_t dim = rule.operands[i].factors.find(rule.outer);
    if (dim != std::string::npos) {
      groups[i] = launch.signature.operands[static_cast<size_t>(roles.read[i])]
                      .dims[dim];
    }
  }
  MEGA_RETURN_IF_ERROR(checkNesting(rule, read, groups));
  return checkSharding(rule, read, written);
}

StatusOr<ConversionShape> conversionShape(const ShardedLaunch &launch,
                                          const Mesh &mesh) {
  const Layout x = whole(launch.layouts[0], mesh);
  const Layout y = whole(launch.layouts[1], mesh);
  MEGA_ASSIGN_OR_RETURN(LayoutChange change, changeBetween(x, y));
  static constexpr std::pair<Kernel, Conversion> kKernels[] = {
      {Kernel::AllReduce, Conversion::AllReduce},
      {Kernel::AllGather, Conversion::AllGather},
      {Kernel::ReduceScatter, Conversion::ReduceScatter},
      {Kernel::Slice, Conversion::Slice},
      {Kernel::ToPartial, Conversion::ToPartial},
      {Kernel::AllToAll, Conversion::AllToAll},
  };
  const auto *it =
      std::find_if(std::begin(kKernels), std::end(kKernels),
                   [&](const auto &k) { return k.first == launch.kernel; });
  if (it == std::end(kKernels) || it->second != change.conversion) {
    return badInput("x is [{}] and y [{}], which is {}", x.str(), y.str(),
                    name(change.conversion));
  }
  const bool sums = launch.kernel != Kernel::AllReduce;
  const Reduction reduction = x.partial != 0 ? x.reduction : y.reduction;
  if (sums ? reduction != Reduction::Sum
           : launch.signature.integers[1] != static_cast<int64_t>(reduction)) {
    return badInput("it reduces by another reduction than {}", name(reduction));
  }
  return ConversionShape{std::move(change.axes), change.fromDim, change.toDim,
                         change.fromZigzag, change.toZigzag};
}

bool isPieceStart(Kernel kernel, size_t integer) {
  return pieceStart(kernel, integer) != nullptr;
}

StatusOr<std::vector<CoordinateFactor>>
coordinateFactors(const ShardedLaunch &launch, size_t integer,
                  const Mesh &mesh) {
  std::vector<CoordinateFactor> factors;
  const PieceStart *start = pieceStart(launch.kernel, integer);
  if (!start) {
    return factors;
  }
  const auto operand = static_cast<size_t>(start->operand);
  const BufferType &type = launch.signature.operands[operand];
  const Layout &layout = launch.layouts[operand];
  int dim = start->dim;
  int64_t inner = 1;
  if (dim == kLastDims) {
    dim = type.rowDims();
    for (int i = dim + 1; i < type.rank; ++i) {
      inner *= type.dims[static_cast<size_t>(i)];
      if (layout.shards(i, mesh) != 1) {
        return badInput("dimension {} of operand {} is cut inside of its rows, "
                        "which no {} counts",
                        i, operandName(launch.kernel, start->operand),
                        start->integer);
      }
    }
  }
  // A matrix has rows of samples, no positions.
  if (dim >= layout.rank ||
      (start->integer == "first_position" && type.rank < 3)) {
    return factors;
  }
  const Layout::Dimension &cut = layout.dims[static_cast<size_t>(dim)];
  int64_t extent = type.dims[static_cast<size_t>(dim)] * inner;
  for (int i = cut.count; i-- > 0;) {
    factors.push_back({cut.axes[static_cast<size_t>(i)], extent});
    extent *= mesh.size(cut.axes[static_cast<size_t>(i)]);
  }
  return factors;
}

} // namespace mega
