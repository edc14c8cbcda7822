#include "runtime/comm/InProcessTransfers.h"

#include "runtime/comm/InProcessGroup.h"

#include <cstring>

namespace mega::inprocess {

Transfers::Transfers(World &world, const mega::Group &info)
    : world(world), info(info), channels(info.ranks.size() * info.ranks.size()),
      pools(info.ranks.size()) {
  for (Pool &pool : pools) {
    pool.records = std::vector<Record>(world.options.maxTransfers);
    for (Record &record : pool.records) {
      record.next = std::exchange(pool.free, &record);
    }
  }
}

Transfers::Channel &Transfers::channelOf(int rank, const Operation &operation) {
  const size_t peer = operation.root;
  const size_t self = rank;
  return operation.kind == OperationKind::Send
             ? channels[self * pools.size() + peer]
             : channels[peer * pools.size() + self];
}

StatusOr<Transfer> Transfers::post(int rank, const Operation &operation) {
  if (world.failure.failed()) {
    return world.failure.status();
  }
  Pool &pool = pools[rank];
  Record *record = pool.free;
  if (record == nullptr) {
    return makeError(Code::Internal,
                     "group \"{}\": rank {} has {} transfers posted and none "
                     "waited for, the most there may be",
                     info.name, info.ranks[rank], pool.records.size());
  }
  pool.free = record->next;
  record->next = nullptr;
  record->operation = operation;
  const Transfer transfer = {
      static_cast<uint32_t>(record - pool.records.data()), record->generation};

  const bool isSend = operation.kind == OperationKind::Send;
  Channel &channel = channelOf(rank, operation);
  Queue &mine = isSend ? channel.sends : channel.receives;
  Queue &theirs = isSend ? channel.receives : channel.sends;
  Record *peer = nullptr;
  {
    const std::scoped_lock lock(mutex);
    record->number = ++mine.posted;
    peer = theirs.head;
    if (peer == nullptr) {
      record->state.store(State::Posted, std::memory_order_relaxed);
      (mine.tail != nullptr ? mine.tail->next : mine.head) = record;
      mine.tail = record;
      return transfer;
    }
    theirs.head = peer->next;
    if (theirs.head == nullptr) {
      theirs.tail = nullptr;
    }
    peer->state.store(State::Copying, std::memory_order_relaxed);
  }

  const Operation &other = peer->operation;
  if (operation.count == other.count && operation.type == other.type) {
    if (operation.count > 0) {
      std::memcpy(isSend ? other.receive : operation.receive,
                  isSend ? operation.send : other.send,
                  static_cast<size_t>(operation.blockBytes()));
    }
  } else {
    world.fail(
        mismatch(info, record->number, rank, operation, operation.root, other));
  }
  record->state.store(State::Done, std::memory_order_relaxed);
  peer->state.store(State::Done, std::memory_order_seq_cst);
  pools[operation.root].done.notifyAll();
  return transfer;
}

Status Transfers::check(int rank, Transfer transfer) const {
  const std::vector<Record> &records = pools[rank].records;
  if (transfer.index >= records.size() ||
      records[transfer.index].generation != transfer.generation ||
      records[transfer.index].state.load(std::memory_order_relaxed) ==
          State::Free) {
    return makeError(Code::Internal,
                     "group \"{}\": rank {} waits for a transfer that it has "
                     "not posted, or twice",
                     info.name, info.ranks[rank]);
  }
  return Status::ok();
}

Status Transfers::wait(int rank, Transfer transfer) {
  MEGA_RETURN_IF_ERROR(check(rank, transfer));
  Pool &pool = pools[rank];
  Record &record = pool.records[transfer.index];
  const auto state = [&] {
    return record.state.load(std::memory_order_seq_cst);
  };
  if (state() == State::Posted) {
    const auto deadline = Signal::Clock::now() + world.options.timeLimit;
    const bool inTime = pool.done.wait(
        [&] { return state() != State::Posted || world.failure.failed(); },
        world.spins, deadline);
    if (withdraw(rank, record)) {
      if (!inTime) {
        world.fail(unmet(info, record.number, record.operation,
                         world.options.timeLimit));
      }
      release(rank, record);
      return world.failure.status();
    }
  }
  // Being copied: the peer is running.
  pool.done.wait([&] { return state() == State::Done; }, world.spins,
                 Signal::Clock::time_point::max());
  release(rank, record);
  // Of a pair that does not match nothing was copied.
  return world.failure.failed() ? world.failure.status() : Status::ok();
}

void Transfers::release(int rank, Record &record) {
  record.state.store(State::Free, std::memory_order_relaxed);
  ++record.generation;
  record.next = std::exchange(pools[rank].free, &record);
}

bool Transfers::withdraw(int rank, Record &record) {
  const std::scoped_lock lock(mutex);
  if (record.state.load(std::memory_order_relaxed) != State::Posted) {
    return false;
  }
  const bool isSend = record.operation.kind == OperationKind::Send;
  Channel &channel = channelOf(rank, record.operation);
  Queue &queue = isSend ? channel.sends : channel.receives;
  Record *before = nullptr;
  for (Record *each = queue.head; each != &record; each = each->next) {
    before = each;
  }
  (before != nullptr ? before->next : queue.head) = record.next;
  if (queue.tail == &record) {
    queue.tail = before;
  }
  return true;
}

void Transfers::withdraw(int rank) {
  for (Record &record : pools[rank].records) {
    if (record.state.load(std::memory_order_relaxed) != State::Free &&
        !withdraw(rank, record)) {
      pools[rank].done.wait(
          [&] {
            return record.state.load(std::memory_order_seq_cst) == State::Done;
          },
          world.spins, Signal::Clock::time_point::max());
    }
  }
}

void Transfers::wakeAll() {
  for (Pool &pool : pools) {
    pool.done.notifyAll();
  }
}

} // namespace mega::inprocess
