//===- RingExchange.h - What ranks of a ring send each other ----*- C++ -*-===//
//
// In step t a rank works on the keys of the rank t places further, which come
// from their owner (runtime/plan/RingSteps.h). What step t + 1 needs is posted
// before step t is computed and waited for after it, so that it travels in the
// meantime.
//
// A message is the chunks that its reader sees, contiguous in the memory of
// both ends:
//
//   [chunk][keys, then values][batch, rows of the chunk, heads, dim]
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CPU_RINGEXCHANGE_H
#define MEGA_RUNTIME_CPU_RINGEXCHANGE_H

#include "runtime/comm/Communicator.h"
#include "runtime/cpu/AttentionProblem.h"
#include "runtime/plan/RingSteps.h"

#include <array>

namespace mega {

/// A ring and the rank's place in it.
struct RingPlace {
  Ring ring;
  int64_t rank;
  GroupMember member;

  /// `k`: the rank's piece; `places`: of whole rows.
  RingPlace(const KernelContext &ctx, const KernelArguments &args,
            const View &k, const View &places);

  /// The chunks of keys that the rank works on in a step.
  ChunkRange chunksIn(int64_t step) const {
    return chunksSeen(ring, rank, ring.ownerIn(step, rank));
  }
  /// Which keys of the whole rows a chunk of that step has.
  Range rowsOf(int64_t step, int64_t chunk) const {
    const SequencePiece piece = ring.pieceOf(ring.ownerIn(step, rank));
    const SequenceRun &run = piece.begin()[chunk];
    return {run.begin, run.end()};
  }
};

/// Memory for chunks of keys and values.
class ChunkBuffer {
public:
  /// Chunks of a piece like `k`, of elements of `type`, from `data` on.
  ChunkBuffer(const Ring &ring, const View &k, DataType type, std::byte *data);

  /// Of both keys and values.
  int64_t elementsOfChunk() const { return 2 * chunk.elements(); }
  int64_t bytes() const {
    return chunks * elementsOfChunk() * byteSize(chunk.type);
  }
  DataType type() const { return chunk.type; }
  std::byte *at(int64_t i) const {
    return data + i * elementsOfChunk() * byteSize(chunk.type);
  }
  /// The rows of a chunk.
  KeyRows operator[](int64_t i) const {
    const int64_t half = chunk.elements() * byteSize(chunk.type);
    return {View(chunk, at(i)), View(chunk, at(i) + half), 0, chunk.dims[1]};
  }

private:
  /// The keys of one chunk.
  BufferType chunk;
  int64_t chunks;
  std::byte *data;
};

/// Messages that are on their way.
class RingMessages {
public:
  RingMessages(const KernelContext &ctx, const RingPlace &place)
      : ctx(ctx), place(place) {}

  void send(const ChunkBuffer &from, const ChunkRange &chunks, int64_t to);
  void receive(const ChunkBuffer &into, const ChunkRange &chunks, int64_t from);
  /// Until all have arrived or left. False once anything has failed.
  bool wait();

private:
  void keep(StatusOr<Transfer> transfer);

  const KernelContext &ctx;
  const RingPlace &place;
  std::array<Transfer, 2> posted = {};
  size_t count = 0;
  bool failed = false;
};

/// The keys and values of one step after another.
class RingKeys {
public:
  /// `exchange` is the kernel's scratch (ringScratch).
  RingKeys(const KernelContext &ctx, const RingPlace &place, const View &k,
           const View &v, const View &exchange);

  /// Posts what `step` needs, if there is such a step.
  void post(int64_t step);
  /// Until it is there. False once anything has failed.
  bool wait() { return messages.wait(); }
  /// A chunk of a step that has come.
  KeyRows rows(int64_t step, int64_t chunk) const;

private:
  /// What this rank sends: its own keys without the gaps between their rows.
  void pack(ThreadPool &pool);

  const RingPlace &place;
  const View &k, &v;
  ChunkBuffer own;
  std::array<ChunkBuffer, 2> arriving;
  RingMessages messages;
};

} // namespace mega

#endif // MEGA_RUNTIME_CPU_RINGEXCHANGE_H
