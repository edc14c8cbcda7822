#include "runtime/cpu/RingExchange.h"

#include "runtime/cpu/Groups.h"
#include "runtime/cpu/Parallel.h"

#include <cstring>

namespace mega {

static Ring ringOf(const KernelArguments &args, const View &k,
                   const View &places) {
  return {places.dims[1] / k.dims[1], places.dims[1],
          static_cast<SequenceOrder>(args.integers[1]), args.integers[2] != 0,
          args.integers[3]};
}

RingPlace::RingPlace(const KernelContext &ctx, const KernelArguments &args,
                     const View &k, const View &places)
    : ring(ringOf(args, k, places)),
      member(ring.ranks == 1 ? GroupMember{} : memberOf(ctx, args)) {
  rank = member.place;
}

ChunkBuffer::ChunkBuffer(const Ring &ring, const View &k, DataType type,
                         std::byte *data)
    : chunk(type, {k.dims[0], ring.chunkRows(), k.dims[2], k.dims[3]}),
      chunks(ring.chunks()), data(data) {}

void RingMessages::keep(StatusOr<Transfer> transfer) {
  if (transfer.isOk()) {
    posted[count++] = *transfer;
  } else {
    failed = true;
    mega::keep(ctx, std::move(transfer).takeStatus());
  }
}

void RingMessages::send(const ChunkBuffer &from, const ChunkRange &chunks,
                        int64_t to) {
  if (chunks.count > 0 && !failed) {
    keep(place.member.communicator->postSend(
        from.at(chunks.first), chunks.count * from.elementsOfChunk(),
        from.type(), static_cast<int>(to)));
  }
}

void RingMessages::receive(const ChunkBuffer &into, const ChunkRange &chunks,
                           int64_t from) {
  if (chunks.count > 0 && !failed) {
    keep(place.member.communicator->postReceive(
        into.at(chunks.first), chunks.count * into.elementsOfChunk(),
        into.type(), static_cast<int>(from)));
  }
}

bool RingMessages::wait() {
  for (size_t i = 0; i < count; ++i) {
    Status status = place.member.communicator->wait(posted[i]);
    if (!status.isOk()) {
      failed = true;
      mega::keep(ctx, std::move(status));
    }
  }
  count = 0;
  return !failed;
}

RingKeys::RingKeys(const KernelContext &ctx, const RingPlace &place,
                   const View &k, const View &v, const View &exchange)
    : place(place), k(k), v(v), own(place.ring, k, k.type, exchange.data),
      arriving{
          ChunkBuffer(place.ring, k, k.type, exchange.data + own.bytes()),
          ChunkBuffer(place.ring, k, k.type, exchange.data + 2 * own.bytes())},
      messages(ctx, place) {
  if (place.ring.ranks > 1) {
    pack(ctx.pool);
  }
}

void RingKeys::pack(ThreadPool &pool) {
  const int64_t batch = k.dims[0], rows = place.ring.chunkRows();
  const auto bytes = static_cast<size_t>(k.rowSize() * byteSize(k.type));
  forRows(pool, place.ring.chunks() * batch * rows, 2 * k.rowSize(),
          [&](int64_t task) {
            const int64_t row = task % rows, b = task / rows % batch;
            const int64_t chunk = task / rows / batch;
            const KeyRows to = own[chunk];
            for (const auto &[from, into] :
                 {std::pair(&k, &to.k), {&v, &to.v}}) {
              const int64_t source = b * k.dims[1] + chunk * rows + row;
              std::memcpy(
                  into->data + (b * rows + row) * static_cast<int64_t>(bytes),
                  from->data + source * from->rowStride * byteSize(from->type),
                  bytes);
            }
          });
}

void RingKeys::post(int64_t step) {
  const Ring &ring = place.ring;
  if (step >= ring.ranks) {
    return;
  }
  messages.receive(arriving[static_cast<size_t>(step % 2)],
                   place.chunksIn(step), ring.ownerIn(step, place.rank));
  const int64_t reader = ring.readerIn(step, place.rank);
  messages.send(own, chunksSeen(ring, reader, place.rank), reader);
}

KeyRows RingKeys::rows(int64_t step, int64_t chunk) const {
  if (step == 0) {
    const int64_t count = place.ring.chunkRows();
    return {k, v, chunk * count, count};
  }
  return arriving[static_cast<size_t>(step % 2)][chunk];
}

} // namespace mega
