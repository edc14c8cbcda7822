//===- Communicator.h - A group of ranks that exchange data -----*- C++ -*-===//
//
// One rank's end of a group. Who is in a group, and in which order, is decided
// by the plan; every member issues the same operations in the same order.
//
//   in-process   InProcessWorld.h   ranks are threads, memory is shared
//   Gloo         GlooWorld.h        ranks are processes, on one host or many
//
// Guarantees, the same for every implementation (test/runtime/comm runs one
// suite on all of them):
//
// - A reduction is ((x0 + x1) + x2) + ... in the order of the group's ranks for
//   every element. Every rank, and every implementation, gets the same bits.
//   bf16 is summed in f32 and rounded once. `max` and `min` keep a NaN.
// - The k-th operation of every member must agree in kind, element type, count,
//   reduction and root. If not, every member gets Code::Internal with both
//   values, and what `receive` holds is unspecified. A sender and a receiver
//   that disagree are told so in the same way.
// - A call that is not complete after the time limit of its world fails with
//   Code::Unavailable and names the operation and the ranks that are missing.
// - Failure is final and shared: after the first error of any communicator of a
//   world, or abort(), every blocked and every later call of all communicators
//   of that world returns the status of that first error, the root cause.
//
// Buffers are contiguous, of `count` elements or size() * count where stated.
// `send` and `receive` may not overlap unless "in place" says how. They belong
// to the operation until the call returns, or wait() for a posted transfer.
// A count of 0 is legal, null pointers too then.
//
// Threads: one thread at a time per communicator; abort() from any thread. All
// communicators of a rank may share one thread.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_COMM_COMMUNICATOR_H
#define MEGA_RUNTIME_COMM_COMMUNICATOR_H

#include "runtime/comm/Operation.h"
#include "runtime/plan/Status.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace mega {

/// What the communicators of one world have in common.
struct CommunicatorOptions {
  /// For one call, from its beginning to its end.
  std::chrono::milliseconds timeLimit = std::chrono::minutes(5);
  /// Transfers that one member may have posted and not waited for.
  int maxTransfers = 256;
};

/// A posted send or receive, to be waited for exactly once.
struct Transfer {
  uint32_t index = 0;
  uint32_t generation = 0;
};

class Communicator {
public:
  virtual ~Communicator() = default;
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;

  /// This member's place in the group, 0 .. size() - 1.
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(group_.ranks.size()); }
  const Group &group() const { return group_; }

  /// receive[i] = reduction over the ranks of send[i]. In place: the same
  /// pointer.
  Status allReduce(const void *send, void *receive, int64_t count,
                   DataType type, Reduction reduction = Reduction::Sum);
  /// receive[i] = reduction over the ranks of send[rank() * count + i]; `send`
  /// holds size() * count. In place: receive = send + rank() * count.
  Status reduceScatter(const void *send, void *receive, int64_t count,
                       DataType type, Reduction reduction = Reduction::Sum);
  /// receive[r * count + i] = send[i] of rank r; `receive` holds size() *
  /// count. In place: send = receive + rank() * count.
  Status allGather(const void *send, void *receive, int64_t count,
                   DataType type);
  /// receive[r * count + i] = send[rank() * count + i] of rank r; both hold
  /// size() * count. Never in place.
  Status allToAll(const void *send, void *receive, int64_t count,
                  DataType type);
  /// data[i] = data[i] of rank `root`.
  Status broadcast(void *data, int64_t count, DataType type, int root);
  /// Returns when every member has called it.
  Status barrier();

  /// Neither waits for the peer. The k-th send to a rank meets the k-th receive
  /// that this rank posts for us. Receives posted early save the data a wait or
  /// a copy. Fails when maxTransfers are outstanding.
  StatusOr<Transfer> postSend(const void *data, int64_t count, DataType type,
                              int peer);
  StatusOr<Transfer> postReceive(void *data, int64_t count, DataType type,
                                 int peer);
  /// Until the data has left or arrived. Consumes the transfer, also if it
  /// fails: its memory is the caller's again.
  virtual Status wait(Transfer transfer) = 0;

  /// Fails this communicator and all others of its world with `cause`, an
  /// error, unless they failed before. Wakes whoever is blocked in them.
  virtual void abort(const Status &cause) = 0;

protected:
  Communicator(Group group, int rank) : group_(std::move(group)), rank_(rank) {}

  /// An operation with legal arguments.
  virtual Status run(const Operation &operation) = 0;
  virtual StatusOr<Transfer> post(const Operation &operation) = 0;

private:
  Status check(const Operation &operation) const;
  Status checkedRun(const Operation &operation);
  StatusOr<Transfer> checkedPost(const Operation &operation);

  Group group_;
  int rank_;
};

} // namespace mega

#endif // MEGA_RUNTIME_COMM_COMMUNICATOR_H
