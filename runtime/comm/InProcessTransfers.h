//===- InProcessTransfers.h - Sends and receives in a group -----*- C++ -*-===//
//
// Private to the in-process implementation. For every ordered pair of members
// there is a queue of posted sends and one of posted receives, of which at most
// one is not empty. Whoever posts the second half of a pair copies the data, in
// its post, from one's memory to the other's.
//
//   Free -> Posted -> (Copying ->) Done -> Free
//
// Records come from a fixed pool per member. Only the member's thread takes and
// returns them; `mutex` guards queues and the step from Posted.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_COMM_INPROCESSTRANSFERS_H
#define MEGA_RUNTIME_COMM_INPROCESSTRANSFERS_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/Signal.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace mega::inprocess {

struct World;

class Transfers {
public:
  Transfers(World &world, const mega::Group &info);

  StatusOr<Transfer> post(int rank, const Operation &operation);
  Status wait(int rank, Transfer transfer);
  /// The member leaves: nobody touches its memory from here on.
  void withdraw(int rank);
  void wakeAll();

private:
  enum class State : uint8_t { Free, Posted, Copying, Done };
  struct Record {
    std::atomic<State> state{State::Free};
    uint32_t generation = 0;
    Operation operation;
    /// Of this channel and direction, from 1.
    uint64_t number = 0;
    Record *next = nullptr;
  };
  struct Queue {
    Record *head = nullptr;
    Record *tail = nullptr;
    uint64_t posted = 0;
  };
  /// From one member to another.
  struct Channel {
    Queue sends;
    Queue receives;
  };
  struct Pool {
    std::vector<Record> records;
    Record *free = nullptr;
    /// Set when one of the member's transfers is done.
    Signal done;
  };

  Channel &channelOf(int rank, const Operation &operation);
  Status check(int rank, Transfer transfer) const;
  void release(int rank, Record &record);
  /// Takes `record` out of its queue unless it was met. Locks.
  bool withdraw(int rank, Record &record);

  World &world;
  const mega::Group &info;
  std::mutex mutex;
  std::vector<Channel> channels;
  std::vector<Pool> pools;
};

} // namespace mega::inprocess

#endif // MEGA_RUNTIME_COMM_INPROCESSTRANSFERS_H
