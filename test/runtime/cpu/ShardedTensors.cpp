#include "test/runtime/cpu/ShardedTensors.h"

#include "runtime/cpu/CpuKernels.h"
#include "runtime/plan/TensorPiece.h"
#include "test/runtime/comm/Ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace mega::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// visit(T()) with the type of elements.
template <typename Visit> auto withType(DataType type, Visit visit) {
  switch (type) {
  case DataType::F32:
    return visit(float());
  case DataType::BF16:
    return visit(BFloat16());
  case DataType::I32:
    return visit(int32_t());
  default:
    std::abort();
  }
}

template <typename T> T rounded(double value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return BFloat16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

double rounded(DataType type, double value) {
  return withType(type, [&](auto zero) {
    return static_cast<double>(rounded<decltype(zero)>(value));
  });
}

std::vector<std::byte> encode(DataType type, const Values &values) {
  return withType(type, [&](auto zero) {
    std::vector<std::byte> bytes(values.size() * sizeof zero);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto element = rounded<decltype(zero)>(values[i]);
      std::memcpy(bytes.data() + i * sizeof zero, &element, sizeof zero);
    }
    return bytes;
  });
}

Values decode(DataType type, const std::vector<std::byte> &bytes) {
  return withType(type, [&](auto element) {
    Values values(bytes.size() / sizeof element);
    for (size_t i = 0; i < values.size(); ++i) {
      std::memcpy(&element, bytes.data() + i * sizeof element, sizeof element);
      values[i] = static_cast<double>(element);
    }
    return values;
  });
}

/// The rank's coordinate on the axes in `state`, and how many there are.
struct Place {
  int64_t place = 0, size = 1;
};
Place placeOn(const Layout &layout, State state, const Mesh &mesh,
              int64_t rank) {
  Place found;
  for (int a = 0; a < kAxisCount; ++a) {
    const auto axis = static_cast<Axis>(a);
    if (mesh.size(axis) > 1 && layout.state(axis) == state) {
      found.place += mesh.coordinate(rank, axis) * found.size;
      found.size *= mesh.size(axis);
    }
  }
  return found;
}
bool isReplica(const Layout &layout, const Mesh &mesh, int64_t rank) {
  return placeOn(layout, State::Invariant, mesh, rank).place != 0 ||
         placeOn(layout, State::Replicated, mesh, rank).place != 0;
}

/// In how many pieces a ring's keys are, by its operands' types.
int64_t ringSize(Kernel kernel, const std::vector<BufferType> &types) {
  const size_t k = kernel == Kernel::RingAttention ? 1 : 2;
  return types[k + 4].dims[1] / types[k].dims[1];
}

/// The type of a scratch operand of a rank, by the types of those before it.
BufferType scratchType(Kernel kernel, const std::vector<BufferType> &types) {
  switch (kernel) {
  case Kernel::RingAttention:
    return types.size() == 9
               ? BufferType(types[1].type,
                            {ringScratch(types[1], ringSize(kernel, types))})
               : BufferType(DataType::F32, {ringSums(types[0])});
  case Kernel::RingAttentionGrad:
    return types.size() == 13
               ? BufferType(types[2].type,
                            {ringScratch(types[2], ringSize(kernel, types))})
               : BufferType(DataType::F32,
                            {ringGradSums(types[1], types[2],
                                          ringSize(kernel, types))});
  case Kernel::AttentionGrad:
    return types[5];
  case Kernel::PackedAttentionGrad:
    return types[9];
  case Kernel::HeadStats:
    return {DataType::F32, {headScratch(types[0].rows(), types[1].rows())}};
  case Kernel::HeadStatsGrad:
    return {DataType::F32,
            {headGradScratch(types[0].rows(), types[1].rows(),
                             types[0].rowSize(), types[0].type)}};
  default:
    std::abort();
  }
}

/// The rule as it is stated, invariant told from replicated.
Status checkStates(const ShardedLaunch &launch) {
  MEGA_ASSIGN_OR_RETURN(const ShardingRule rule,
                        shardingRule(launch.kernel, launch.signature));
  std::vector<Layout> read, written;
  for (size_t i = 0; i < launch.layouts.size(); ++i) {
    const Access access = kernelSpec(launch.kernel).operands[i].access;
    if (access != Access::Scratch) {
      (access == Access::Read ? read : written).push_back(launch.layouts[i]);
    }
  }
  return checkSharding(rule, read, written);
}

} // namespace

Mesh tpMesh(int64_t ranks) {
  Mesh mesh;
  mesh.sizes[static_cast<size_t>(Axis::Tp)] = ranks;
  return mesh;
}

Layout tpLayout(char state, const BufferType &type, int64_t ranks, int padded) {
  constexpr uint8_t kTp = 1u << static_cast<int>(Axis::Tp);
  Layout layout;
  if (state == 'R') {
    layout.replicated = kTp;
  } else if (state == 'P') {
    layout.partial = kTp;
  } else if (state != 'I') {
    const auto dim = static_cast<size_t>(state - '0');
    layout.rank = static_cast<uint8_t>(type.rank);
    layout.dims[dim].push(Axis::Tp);
    if (padded == state - '0' && type.dims[dim] % ranks != 0) {
      layout.dims[dim].padded = (type.dims[dim] / ranks + 1) * ranks;
    }
  }
  return layout;
}

std::span<const int64_t> shapeOf(const BufferType &type) {
  return std::span(type.dims).first(static_cast<size_t>(type.rank));
}

BufferType localType(const BufferType &whole, const Layout &layout,
                     const Mesh &mesh) {
  BufferType local = whole;
  for (int d = 0; d < whole.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    local.dims[i] = layout.localExtent(d, whole.dims[i], mesh);
  }
  local.rowStride = local.rowSize();
  return local;
}

Values Ranks::random(int64_t count) {
  std::normal_distribution<double> normal;
  Values values(static_cast<size_t>(count));
  std::generate(values.begin(), values.end(),
                [&] { return normal(generator); });
  return values;
}

Sharded Ranks::zeros(const BufferType &type, const Layout &layout) const {
  Sharded tensor{type, layout, {}};
  const auto count =
      static_cast<size_t>(localType(type, layout, mesh).elements());
  tensor.pieces.assign(static_cast<size_t>(mesh.ranks()), Values(count));
  return tensor;
}

Sharded Ranks::cut(const BufferType &type, const Layout &layout,
                   const Values &whole) {
  const int64_t parts = placeOn(layout, State::Partial, mesh, 0).size;
  std::vector<Values> summands;
  Values rest = whole;
  for (int64_t part = 1; part < parts; ++part) {
    summands.push_back(random(type.elements()));
    for (size_t i = 0; i < rest.size(); ++i) {
      summands.back()[i] = rounded(type.type, summands.back()[i]);
      rest[i] -= summands.back()[i];
    }
  }
  summands.push_back(rest);
  Sharded tensor = zeros(type, layout);
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    const Values &from = summands[static_cast<size_t>(
        placeOn(layout, State::Partial, mesh, rank).place)];
    Values &piece = tensor.pieces[static_cast<size_t>(rank)];
    const TensorPiece map(shapeOf(type), layout, mesh, rank);
    map.forEachRun({0, map.elements()}, [&](int64_t to, int64_t at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        piece[static_cast<size_t>(to + i)] =
            at < 0 ? kNaN
                   : rounded(type.type, from[static_cast<size_t>(at + i)]);
      }
    });
  }
  return tensor;
}

Values Ranks::together(const Sharded &tensor) const {
  const bool sums = tensor.layout.reduction == Reduction::Sum;
  Values whole(static_cast<size_t>(tensor.type.elements()),
               sums ? 0.0 : -std::numeric_limits<double>::infinity());
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    const Values &piece = tensor.pieces[static_cast<size_t>(rank)];
    if (isReplica(tensor.layout, mesh, rank)) {
      for (int64_t other = 0; other < rank; ++other) {
        bool same = !isReplica(tensor.layout, mesh, other);
        for (const Axis axis :
             {Axis::Tp, Axis::TpMinor, Axis::TpMajor, Axis::Cp, Axis::Dp}) {
          const State state = tensor.layout.state(axis);
          same &= state == State::Invariant || state == State::Replicated ||
                  mesh.coordinate(rank, axis) == mesh.coordinate(other, axis);
        }
        EXPECT_TRUE(
            !same ||
            std::memcmp(piece.data(),
                        tensor.pieces[static_cast<size_t>(other)].data(),
                        piece.size() * sizeof(double)) == 0)
            << "ranks " << other << " and " << rank << " differ";
      }
      continue;
    }
    const TensorPiece map(shapeOf(tensor.type), tensor.layout, mesh, rank);
    map.forEachRun({0, map.elements()}, [&](int64_t at, int64_t to, int64_t n) {
      for (int64_t i = 0; to >= 0 && i < n; ++i) {
        double &element = whole[static_cast<size_t>(to + i)];
        const double value = piece[static_cast<size_t>(at + i)];
        element = sums ? element + value : std::max(element, value);
      }
    });
  }
  return whole;
}

StatusOr<std::vector<Layout>>
Ranks::infer(Kernel kernel, const std::vector<const Sharded *> &read,
             const std::vector<BufferType> &results,
             const std::vector<int64_t> &integers) const {
  std::vector<BufferType> types;
  std::vector<Layout> layouts;
  for (const Sharded *operand : read) {
    types.push_back(operand->type);
    layouts.push_back(operand->layout);
  }
  types.insert(types.end(), results.begin(), results.end());
  MEGA_ASSIGN_OR_RETURN(const ShardingRule rule,
                        shardingRule(kernel, {types, integers, {}}));
  return inferSharding(rule, layouts);
}

Status Ranks::launch(Kernel kernel, const std::vector<Sharded *> &operands,
                     const std::vector<int64_t> &integers,
                     const std::vector<double> &floats) {
  const KernelSpec &spec = kernelSpec(kernel);
  std::vector<BufferType> types;
  std::vector<Layout> layouts;
  for (const Sharded *operand : operands) {
    types.push_back(operand ? localType(operand->type, operand->layout, mesh)
                            : scratchType(kernel, types));
    layouts.push_back(operand ? operand->layout : Layout());
    if (operand) {
      MEGA_RETURN_IF_ERROR(
          operand->layout.verify(mesh, shapeOf(operand->type)));
    }
  }
  const ShardedLaunch sharded = {kernel, {types, integers, floats}, layouts};
  MEGA_RETURN_IF_ERROR(checkSharding(sharded, mesh));
  MEGA_RETURN_IF_ERROR(checkStates(sharded));
  std::vector<std::vector<CoordinateFactor>> factors;
  for (size_t i = 0; i < integers.size(); ++i) {
    MEGA_ASSIGN_OR_RETURN(factors.emplace_back(),
                          coordinateFactors(sharded, i, mesh));
  }
  const auto onRank = [&](int64_t rank, ThreadPool &threads,
                          RankGroups *groups) -> Status {
    std::vector<int64_t> own = integers;
    for (size_t i = 0; i < own.size(); ++i) {
      own[i] = isPieceStart(kernel, i) ? 0 : own[i];
      for (const CoordinateFactor &factor : factors[i]) {
        own[i] += factor.coefficient * mesh.coordinate(rank, factor.axis);
      }
    }
    MEGA_RETURN_IF_ERROR(checkLaunch(kernel, {types, own, floats}));
    std::vector<std::vector<std::byte>> bytes;
    std::vector<View> views;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Access access = resolvedAccess(spec, static_cast<int>(i), own);
      const bool isRead = access == Access::Read || access == Access::ReadWrite;
      bytes.push_back(encode(
          types[i].type,
          isRead ? operands[i]->pieces[static_cast<size_t>(rank)]
                 : Values(static_cast<size_t>(types[i].elements()), kNaN)));
      views.emplace_back(types[i], bytes.back().data());
    }
    // Samples are the first operand's rows.
    const int64_t samples = layouts[0].shard(0, mesh, rank) * types[0].dims[0];
    cpuKernel(kernel)(
        {threads, scalars, application, firstSample + samples, groups},
        {views, own, floats});
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] && spec.operands[i].access != Access::Read) {
        operands[i]->pieces[static_cast<size_t>(rank)] =
            decode(types[i].type, bytes[i]);
      }
    }
    return Status::ok();
  };
  launched.insert(kernel);
  if (!isRing(kernel) || ringSize(kernel, types) == 1) {
    for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
      MEGA_RETURN_IF_ERROR(onRank(rank, pool, nullptr));
    }
    return Status::ok();
  }
  // All ranks at once, which need each other.
  std::vector<Status> statuses(static_cast<size_t>(mesh.ranks()));
  runRanks(Backend::InProcess, static_cast<int>(mesh.ranks()),
           [&](RankContext &ctx) {
             ThreadPool own(1);
             const GroupMember members[] = {{&ctx[0], ctx.rank, mesh.ranks()}};
             RankGroups groups{members, Status::ok(), {}};
             statuses[static_cast<size_t>(ctx.rank)] =
                 onRank(ctx.rank, own, &groups);
             EXPECT_OK(std::move(groups.failure));
           });
  for (Status &status : statuses) {
    MEGA_RETURN_IF_ERROR(std::move(status));
  }
  return Status::ok();
}

Sharded Ranks::convert(const Sharded &x, const Layout &to) {
  const auto change = changeBetween(x.layout, to);
  EXPECT_TRUE(change.isOk()) << change.status().message();
  constexpr std::pair<Conversion, Kernel> kKernels[] = {
      {Conversion::AllReduce, Kernel::AllReduce},
      {Conversion::AllGather, Kernel::AllGather},
      {Conversion::ReduceScatter, Kernel::ReduceScatter},
      {Conversion::Slice, Kernel::Slice},
      {Conversion::ToPartial, Kernel::ToPartial},
      {Conversion::AllToAll, Kernel::AllToAll}};
  const auto *const found = std::find_if(
      std::begin(kKernels), std::end(kKernels),
      [&](const auto &entry) { return entry.first == change->conversion; });
  if (found == std::end(kKernels)) {
    EXPECT_TRUE(change->conversion == Conversion::Replicate ||
                change->conversion == Conversion::AssumeInvariant)
        << name(change->conversion) << " has no kernel";
    return x.as(to);
  }
  const Kernel kernel = found->second;
  launched.insert(kernel);
  Sharded y = zeros(x.type, to);
  const BufferType in = localType(x.type, x.layout, mesh);
  const BufferType out = localType(x.type, to, mesh);
  std::vector<int64_t> integers = {0, static_cast<int64_t>(x.layout.reduction)};
  const std::vector<BufferType> both = {in, out};
  const std::vector<Layout> layouts = {x.layout, to};
  const auto shape =
      conversionShape({kernel, {both, integers, {}}, layouts}, mesh);
  EXPECT_TRUE(shape.isOk()) << shape.status().message();
  int64_t extent = 1;
  if (kernel == Kernel::AllToAll) {
    integers = {0, shape->fromDim, shape->toDim, 0, 0};
    extent =
        allToAllScratch(in, out, shape->fromDim, shape->toDim, false, false);
  } else if (kernel != Kernel::AllReduce) {
    integers = {0, shape->dim(), 0};
    extent = collectiveScratch(kernel == Kernel::AllGather ? out : in,
                               shape->dim(), false);
  }
  runRanks(Backend::InProcess, static_cast<int>(mesh.ranks()),
           [&](RankContext &ctx) {
             const auto rank = static_cast<size_t>(ctx.rank);
             std::vector<std::byte> from = encode(in.type, x.pieces[rank]);
             std::vector<std::byte> into = encode(out.type, y.pieces[rank]);
             std::vector<View> views = {View(in, from.data()),
                                        View(out, into.data())};
             const BufferType scratch(in.type, {extent});
             std::vector<std::byte> packed(
                 static_cast<size_t>(scratch.extentBytes()));
             if (kernelSpec(kernel).operands.size() == 3) {
               views.emplace_back(scratch, packed.data());
             }
             ThreadPool own(1);
             const GroupMember members[] = {{&ctx[0], ctx.rank, mesh.ranks()}};
             RankGroups groups{members, Status::ok()};
             const std::vector<BufferType> types(views.begin(), views.end());
             EXPECT_OK(checkLaunch(kernel, {types, integers, {}}));
             cpuKernel(kernel)({own, scalars, 0, 0, &groups},
                               {views, integers, {}});
             EXPECT_OK(std::move(groups.failure));
             y.pieces[rank] = decode(out.type, into);
           });
  return y;
}

} // namespace mega::test
