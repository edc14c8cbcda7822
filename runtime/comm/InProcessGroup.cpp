#include "runtime/comm/InProcessGroup.h"

#include "runtime/comm/Bytes.h"
#include "runtime/comm/Reduce.h"

#include <algorithm>

namespace mega::inprocess {
namespace {

/// Bytes of one block that a chunk of a large operation covers: small enough
/// to share the work out, and to find written data in the cache it was read to.
constexpr int64_t kChunkBytes = 32768;

/// All members' blocks together from which results are written past the cache.
constexpr int64_t kLargeBytes = int64_t(16) << 20;

int64_t chunksPerBlock(const Operation &operation) {
  return (operation.blockBytes() + kChunkBytes - 1) / kChunkBytes;
}

/// The chunks of a large operation. all_reduce and broadcast have one block,
/// the others one per member, all_to_all one per pair of members.
int64_t chunkCount(const Operation &operation, int64_t size) {
  const int64_t blocks = operation.kind == OperationKind::AllToAll ? size * size
                         : operation.kind == OperationKind::AllGather ||
                                 operation.kind == OperationKind::ReduceScatter
                             ? size
                             : 1;
  return blocks * chunksPerBlock(operation);
}

} // namespace

void World::fail(const Status &cause) {
  if (failure.set(cause)) {
    const std::scoped_lock lock(mutex);
    for (Group *group : groups) {
      group->wakeAll();
    }
  }
}

Group::Group(std::shared_ptr<World> world, mega::Group info)
    : world(std::move(world)), info(std::move(info)),
      members(this->info.ranks.size()), transfers(*this->world, this->info) {
  for (Member &member : members) {
    for (auto &slot : member.slots) {
      slot = std::make_unique<std::byte[]>(kSlotBytes);
    }
  }
  const std::scoped_lock lock(this->world->mutex);
  this->world->groups.push_back(this);
}

Group::~Group() {
  const std::scoped_lock lock(world->mutex);
  std::erase(world->groups, this);
}

void Group::wakeAll() {
  release.notifyAll();
  transfers.wakeAll();
}

Status Group::run(int rank, uint64_t number, const Operation &operation) {
  if (world->failure.failed()) {
    return world->failure.status();
  }
  Member &member = members[rank];
  Operation &published = member.operations[number % 2];
  published = operation;
  const bool small = operation.sendBytes(size()) <= kSlotBytes;
  if (small) {
    std::byte *slot = member.slots[number % 2].get();
    copyBytes(slot, operation.send, operation.sendBytes(size()));
    published.send = slot;
  }
  member.begun.store(number, std::memory_order_release);
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size()) {
    match(number);
  }
  const auto isReleased = [&] {
    return released.load(std::memory_order_acquire) == number;
  };
  if (!isReleased()) {
    const auto deadline = Signal::Clock::now() + world->options.timeLimit;
    const auto isOver = [&] { return isReleased() || world->failure.failed(); };
    std::vector<int> absent;
    if (!release.wait(isOver, world->spins, deadline)) {
      absent = missingMembers(number);
      if (absent.empty()) { // The last one came just now.
        release.wait(isOver, world->spins, Signal::Clock::time_point::max());
      }
    }
    uint64_t before = number - 1;
    if (!isReleased() && (released.compare_exchange_strong(before, kNever) ||
                          before == kNever)) {
      if (!absent.empty()) {
        world->fail(
            missing(info, number, operation, absent, world->options.timeLimit));
      }
      return world->failure.status();
    }
  }
  if (small) {
    moveSmall(rank, number);
  } else {
    moveLarge(rank, number);
  }
  return Status::ok();
}

void Group::match(uint64_t number) {
  const Operation &first = members[0].operations[number % 2];
  for (int rank = 1; rank < size(); ++rank) {
    const Operation &other = members[rank].operations[number % 2];
    if (!first.matches(other)) {
      world->fail(mismatch(info, number, 0, first, rank, other));
      return;
    }
  }
  arrived.store(0, std::memory_order_relaxed);
  nextChunk.store(0, std::memory_order_relaxed);
  doneChunks.store(0, std::memory_order_relaxed);
  // Unless a member has given up, whose memory may be gone.
  uint64_t before = number - 1;
  if (released.compare_exchange_strong(before, number)) {
    release.notifyAll();
  }
}

std::vector<int> Group::missingMembers(uint64_t number) const {
  std::vector<int> absent;
  for (int rank = 0; rank < size(); ++rank) {
    if (members[rank].begun.load(std::memory_order_acquire) < number) {
      absent.push_back(rank);
    }
  }
  return absent;
}

void Group::moveSmall(int rank, uint64_t number) const {
  const Operation &mine = members[rank].operations[number % 2];
  const int64_t block = mine.blockBytes();
  const auto slot = [&](int peer) {
    return members[peer].slots[number % 2].get();
  };
  switch (mine.kind) {
  case OperationKind::AllReduce:
  case OperationKind::ReduceScatter: {
    std::array<const void *, kMaxMembers> sources;
    const int64_t offset =
        mine.kind == OperationKind::ReduceScatter ? rank * block : 0;
    for (int peer = 0; peer < size(); ++peer) {
      sources[peer] = slot(peer) + offset;
    }
    void *const outputs[] = {mine.receive};
    reduce({sources.data(), members.size()}, outputs, mine.count, mine.type,
           mine.reduction);
    break;
  }
  case OperationKind::AllGather:
    for (int peer = 0; peer < size(); ++peer) {
      copyBytes(at(mine.receive, peer * block), slot(peer), block);
    }
    break;
  case OperationKind::AllToAll:
    for (int peer = 0; peer < size(); ++peer) {
      copyBytes(at(mine.receive, peer * block), slot(peer) + rank * block,
                block);
    }
    break;
  case OperationKind::Broadcast:
    if (rank != mine.root) {
      copyBytes(mine.receive, slot(mine.root), block);
    }
    break;
  default:
    break;
  }
}

void Group::moveLarge(int rank, uint64_t number) {
  const int64_t total =
      chunkCount(members[rank].operations[number % 2], size());
  while (true) {
    const int64_t chunk = nextChunk.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= total) {
      break;
    }
    moveChunk(chunk, number);
    if (doneChunks.fetch_add(1, std::memory_order_acq_rel) + 1 == total) {
      completed.store(number, std::memory_order_seq_cst);
      completion.notifyAll();
    }
  }
  // Whoever holds the last chunks is running: no limit, and no abort.
  completion.wait(
      [&] { return completed.load(std::memory_order_acquire) >= number; },
      world->spins, Signal::Clock::time_point::max());
}

void Group::moveChunk(int64_t chunk, uint64_t number) const {
  const auto of = [&](int64_t rank) -> const Operation & {
    return members[rank].operations[number % 2];
  };
  const Operation &any = of(0);
  const int64_t perBlock = chunksPerBlock(any);
  const int64_t blockBytes = any.blockBytes();
  const int64_t block = chunk / perBlock;
  const int64_t begin = chunk % perBlock * kChunkBytes;
  const int64_t bytes = std::min(kChunkBytes, blockBytes - begin);
  switch (any.kind) {
  case OperationKind::AllReduce:
  case OperationKind::ReduceScatter: {
    const bool all = any.kind == OperationKind::AllReduce;
    std::array<const void *, kMaxMembers> sources;
    std::array<void *, kMaxMembers> outputs;
    for (int rank = 0; rank < size(); ++rank) {
      sources[rank] = at(of(rank).send, block * blockBytes + begin);
      outputs[rank] = at(of(rank).receive, begin);
    }
    reduce({sources.data(), members.size()},
           all ? std::span<void *const>(outputs.data(), members.size())
               : std::span<void *const>(&outputs[block], 1),
           bytes / byteSize(any.type), any.type, any.reduction,
           blockBytes * size() >= kLargeBytes);
    break;
  }
  case OperationKind::AllGather:
    for (int rank = 0; rank < size(); ++rank) {
      copyBytes(at(of(rank).receive, block * blockBytes + begin),
                at(of(block).send, begin), bytes);
    }
    break;
  case OperationKind::AllToAll: {
    const int64_t from = block / size();
    const int64_t to = block % size();
    copyBytes(at(of(to).receive, from * blockBytes + begin),
              at(of(from).send, to * blockBytes + begin), bytes);
    break;
  }
  case OperationKind::Broadcast:
    for (int rank = 0; rank < size(); ++rank) {
      copyBytes(at(of(rank).receive, begin), at(of(any.root).send, begin),
                bytes);
    }
    break;
  default:
    break;
  }
}

} // namespace mega::inprocess
