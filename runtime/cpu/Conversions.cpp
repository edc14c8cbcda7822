//===- Conversions.cpp - Conversions between layouts ----------------------===//
//
// A communicator moves contiguous pieces, one after another. Along dimension 0
// that is how a tensor has them; along another, `outer` leading elements each
// have their own part of a piece, and a zigzag's piece has two runs of each.
// The scratch holds the pieces apart:
//
//   whole    [outer][chunk][run]          scratch    [member][outer][run of it]
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/Communicator.h"
#include "runtime/cpu/Groups.h"
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/plan/SequenceOrder.h"

#include <cstring>

namespace mega {
namespace {

/// How the pieces of a group's members lie in a whole.
class Pieces {
public:
  /// Cut along dimension `dim` into pieces like `piece`.
  Pieces(const View &piece, int64_t dim, bool zigzag, int64_t members)
      : zigzag(zigzag), members(members), runs(zigzag ? 2 : 1) {
    for (int64_t i = 0; i < dim; ++i) {
      outer *= piece.dims[static_cast<size_t>(i)];
    }
    bytes = piece.elements() / (outer * runs) * byteSize(piece.type);
  }

  /// One run of one leading element.
  struct Part {
    int64_t member;
    /// Bytes of the whole, of the pieces one after another, and of the piece,
    /// before it.
    int64_t inWhole, inPieces, inPiece;
  };

  bool areContiguous() const { return outer == 1 && !zigzag; }
  /// Bytes of every part.
  size_t partBytes() const { return static_cast<size_t>(bytes); }

  /// body(part) for those of every member.
  template <typename Body> void forAll(ThreadPool &pool, Body &&body) const {
    forRows(pool, outer * members * runs, bytes / 4, [&](int64_t i) {
      body(part(i / (members * runs), i / runs % members, i % runs));
    });
  }
  template <typename Body>
  void forMember(ThreadPool &pool, int64_t member, Body &&body) const {
    forRows(pool, outer * runs, bytes / 4,
            [&](int64_t i) { body(part(i / runs, member, i % runs)); });
  }

  /// The pieces of `whole`, one after another.
  void pack(ThreadPool &pool, const std::byte *whole, std::byte *pieces) const {
    forAll(pool, [&](const Part &part) {
      std::memcpy(pieces + part.inPieces, whole + part.inWhole, partBytes());
    });
  }
  void unpack(ThreadPool &pool, const std::byte *pieces,
              std::byte *whole) const {
    forAll(pool, [&](const Part &part) {
      std::memcpy(whole + part.inWhole, pieces + part.inPieces, partBytes());
    });
  }

private:
  Part part(int64_t o, int64_t member, int64_t run) const {
    const int64_t chunks = members * runs;
    const int64_t chunk = pieceOf(zigzag, member, members, chunks)
                              .runs[static_cast<size_t>(run)]
                              .begin;
    const int64_t inPiece = (o * runs + run) * bytes;
    return {member, (o * chunks + chunk) * bytes,
            member * outer * runs * bytes + inPiece, inPiece};
  }

  const bool zigzag;
  const int64_t members, runs;
  int64_t outer = 1;
  int64_t bytes = 0;
};

/// Bytes that one task moves at least.
constexpr int64_t kTaskBytes = kTaskElements * 4;

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
  const Pieces pieces(x, args.integers[1], args.integers[2] != 0, member.size);
  std::byte *gathered = pieces.areContiguous() ? y.data : scratch.data;
  keep(ctx,
       member.communicator->allGather(x.data, gathered, x.elements(), x.type));
  if (!pieces.areContiguous()) {
    pieces.unpack(ctx.pool, gathered, y.data);
  }
}

void cpu::reduceScatter(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &y = args[1], &scratch = args[2];
  const GroupMember &member = memberOf(ctx, args);
  if (member.size == 1) {
    return copyAll(ctx.pool, x, y);
  }
  const Pieces pieces(y, args.integers[1], args.integers[2] != 0, member.size);
  const std::byte *apart = x.data;
  if (!pieces.areContiguous()) {
    pieces.pack(ctx.pool, x.data, scratch.data);
    apart = scratch.data;
  }
  keep(ctx,
       member.communicator->reduceScatter(apart, y.data, y.elements(), y.type));
}

void cpu::allToAll(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &y = args[1], &scratch = args[2];
  const GroupMember &member = memberOf(ctx, args);
  if (member.size == 1) {
    return copyAll(ctx.pool, x, y);
  }
  const auto &integers = args.integers;
  const int64_t from = integers[1], to = integers[2];
  // Blocks, each cut both ways: one to every member, one from every member.
  View block = x;
  block.dims[static_cast<size_t>(to)] = y.dims[static_cast<size_t>(to)];
  block.rowStride = block.rowSize();
  const Pieces sent(block, to, integers[4] != 0, member.size);
  const Pieces received(block, from, integers[3] != 0, member.size);
  const std::byte *send = x.data;
  std::byte *receive = y.data, *free = scratch.data;
  if (!sent.areContiguous()) {
    sent.pack(ctx.pool, x.data, free);
    send = free;
    free += x.elements() * byteSize(x.type);
  }
  if (!received.areContiguous()) {
    receive = free;
  }
  keep(ctx, member.communicator->allToAll(send, receive, block.elements(),
                                          block.type));
  if (!received.areContiguous()) {
    received.unpack(ctx.pool, receive, y.data);
  }
}

void cpu::slice(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &y = args[1];
  const GroupMember &member = memberOf(ctx, args);
  const Pieces pieces(y, args.integers[1], args.integers[2] != 0, member.size);
  pieces.forMember(ctx.pool, member.place, [&](const Pieces::Part &part) {
    std::memcpy(y.data + part.inPiece, x.data + part.inWhole,
                pieces.partBytes());
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
  const Pieces pieces(x, dim, args.integers[2] != 0, member.size);
  pieces.forAll(ctx.pool, [&](const Pieces::Part &part) {
    if (part.member == member.place) {
      std::memcpy(y.data + part.inWhole, x.data + part.inPiece,
                  pieces.partBytes());
    } else {
      std::memset(y.data + part.inWhole, 0, pieces.partBytes());
    }
  });
}

} // namespace mega
