//===- Conversions.cpp - Conversions between layouts ----------------------===//
//
// A communicator moves contiguous pieces, one after another. Along dimension 0
// that is how a tensor has them; along another, `outer` leading elements each
// have their own part of a piece, and the scratch holds the pieces apart:
//
//   whole    [outer][member][run]         scratch    [member][outer][run]
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/Communicator.h"
#include "runtime/cpu/Groups.h"
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"

#include <cstring>

namespace mega {
namespace {

/// How a piece lies in the whole.
struct Pieces {
  int64_t outer = 1;
  /// Bytes of one part of a piece.
  int64_t run = 0;

  Pieces(const View &piece, int64_t dim) {
    for (int64_t i = 0; i < dim; ++i) {
      outer *= piece.dims[static_cast<size_t>(i)];
    }
    run = piece.elements() / outer * byteSize(piece.type);
  }
  bool isContiguous() const { return outer == 1; }
};

/// Bytes that one task moves at least.
constexpr int64_t kTaskBytes = kTaskElements * 4;

/// body(o, at) for every leading element o and the parts of pieces in `whole`.
template <typename Body>
void forParts(ThreadPool &pool, const Pieces &pieces, int64_t members,
              Body &&body) {
  forRows(pool, pieces.outer * members, pieces.run / 4,
          [&](int64_t part) { body(part / members, part % members); });
}

void copyAll(ThreadPool &pool, const View &from, const View &to) {
  if (from.data == to.data) {
    return;
  }
  const int64_t bytes = from.elements() * byteSize(from.type);
  pool.parallelFor(ceilDiv(bytes, kTaskBytes), [&](int64_t task, auto) {
    const int64_t at = task * kTaskBytes;
    std::memcpy(to.data + at, from.data + at,
                static_cast<size_t>(std::min(kTaskBytes, bytes - at)));
  });
}

} // namespace

void cpu::allReduce(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &y = args[1];
  const GroupMember &member = memberOf(ctx, args);
  if (member.size == 1) {
    return copyAll(ctx.pool, x, y);
  }
  keep(ctx, member.communicator->allReduce(
                x.data, y.data, x.elements(), x.type,
                static_cast<Reduction>(args.integers[1])));
}

void cpu::allGather(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &y = args[1], &scratch = args[2];
  const GroupMember &member = memberOf(ctx, args);
  if (member.size == 1) {
    return copyAll(ctx.pool, x, y);
  }
  const Pieces pieces(x, args.integers[1]);
  std::byte *gathered = pieces.isContiguous() ? y.data : scratch.data;
  keep(ctx,
       member.communicator->allGather(x.data, gathered, x.elements(), x.type));
  if (!pieces.isContiguous()) {
    forParts(ctx.pool, pieces, member.size, [&](int64_t o, int64_t m) {
      std::memcpy(y.data + (o * member.size + m) * pieces.run,
                  gathered + (m * pieces.outer + o) * pieces.run,
                  static_cast<size_t>(pieces.run));
    });
  }
}

void cpu::reduceScatter(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &y = args[1], &scratch = args[2];
  const GroupMember &member = memberOf(ctx, args);
  if (member.size == 1) {
    return copyAll(ctx.pool, x, y);
  }
  const Pieces pieces(y, args.integers[1]);
  const std::byte *apart = x.data;
  if (!pieces.isContiguous()) {
    forParts(ctx.pool, pieces, member.size, [&](int64_t o, int64_t m) {
      std::memcpy(scratch.data + (m * pieces.outer + o) * pieces.run,
                  x.data + (o * member.size + m) * pieces.run,
                  static_cast<size_t>(pieces.run));
    });
    apart = scratch.data;
  }
  keep(ctx,
       member.communicator->reduceScatter(apart, y.data, y.elements(), y.type));
}

void cpu::slice(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &y = args[1];
  const GroupMember &member = memberOf(ctx, args);
  const Pieces pieces(y, args.integers[1]);
  forParts(ctx.pool, pieces, 1, [&](int64_t o, int64_t) {
    std::memcpy(y.data + o * pieces.run,
                x.data + (o * member.size + member.place) * pieces.run,
                static_cast<size_t>(pieces.run));
  });
}

void cpu::toPartial(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &y = args[1];
  const GroupMember &member = memberOf(ctx, args);
  const int64_t dim = args.integers[1];
  if (dim < 0) {
    const View only[] = {y};
    return member.place == 0 ? copyAll(ctx.pool, x, y)
                             : cpu::zero(ctx, {only, {}, {}});
  }
  const Pieces pieces(x, dim);
  forParts(ctx.pool, pieces, member.size, [&](int64_t o, int64_t m) {
    std::byte *part = y.data + (o * member.size + m) * pieces.run;
    if (m == member.place) {
      std::memcpy(part, x.data + o * pieces.run,
                  static_cast<size_t>(pieces.run));
    } else {
      std::memset(part, 0, static_cast<size_t>(pieces.run));
    }
  });
}

} // namespace mega
