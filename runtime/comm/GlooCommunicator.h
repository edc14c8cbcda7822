//===- GlooCommunicator.h - Rank-ordered algorithms on messages -*- C++ -*-===//
//
// Private to the Gloo implementation. Every member sends every other one the
// header of each operation, so that all know of a mismatch, and who is missing.
// The data of the first exchange is posted together with the headers.
//
//   all_reduce, small   everyone sends all of its data to everyone and sums
//   all_reduce, large   slice j of everyone goes to rank j, which sums it and
//                       sends it to everyone
//   reduce_scatter      the first half of that
//   the others          directly from the source to the destination
//
// A transfer exchanges two headers, sender's and receiver's, beside the data.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_COMM_GLOOCOMMUNICATOR_H
#define MEGA_RUNTIME_COMM_GLOOCOMMUNICATOR_H

#include "runtime/comm/GlooMessages.h"

#include <map>

namespace mega::gloocomm {

/// An operation as it is sent. All ranks have the same byte order.
struct Header {
  uint64_t number = 0;
  /// Of the group's name and members.
  uint64_t group = 0;
  int64_t count = 0;
  int32_t root = 0;
  OperationKind kind = OperationKind::Barrier;
  DataType type = DataType::F32;
  Reduction reduction = Reduction::Sum;
  uint8_t unused = 0;

  Operation operation() const {
    return {kind, type, reduction, root, count, nullptr, nullptr};
  }
};
static_assert(sizeof(Header) == 32);

class GlooCommunicator final : public Communicator {
public:
  GlooCommunicator(std::shared_ptr<World> world, Group group, int rank,
                   int groupId);

  Status wait(Transfer transfer) override;
  void abort(const Status &cause) override;

  /// Returns when all members have created this very group.
  Status meet() { return run({.kind = OperationKind::Barrier}); }

private:
  struct Posted {
    Posted(World &world) : headers(world), data(world) {}
    Operation operation;
    uint64_t number = 0;
    Header mine, theirs;
    Messages headers, data;
  };

  Status run(const Operation &operation) override;
  StatusOr<Transfer> post(const Operation &operation) override;

  Status runMessages(const Operation &operation);
  Status waitMessages(Posted &record);
  Status checkBytes(const Operation &operation) const;
  uint64_t slot(Channel channel, int64_t bytes) const {
    return slotOf(groupId, channel, number, bytes);
  }
  int worldRank(int member) const { return group().ranks[member]; }
  Header headerOf(const Operation &operation, uint64_t number) const;
  std::byte *scratch(int64_t bytes);
  /// Elements [begin, end) of `count` that `member` sums.
  std::pair<int64_t, int64_t> slice(int64_t count, int member) const;

  void postFirst(const Operation &operation, Messages &messages);
  void reduceFirst(const Operation &operation);
  void postSecond(const Operation &operation, Messages &messages);
  Status compareHeaders(const Operation &operation,
                        const std::vector<Header> &headers);
  /// The status of the world after `messages` ended with `result`.
  Status explain(const Operation &operation, uint64_t number,
                 const Messages &messages, Messages::Result result);

  std::shared_ptr<World> world;
  int groupId;
  uint64_t groupHash = 0;
  /// Of the current operation.
  uint64_t number = 0;
  std::vector<uint64_t> sent, received;
  std::unique_ptr<std::byte[]> scratchMemory;
  int64_t scratchBytes = 0;
  std::map<uint32_t, std::unique_ptr<Posted>> posted;
  uint32_t nextTransfer = 0;
};

} // namespace mega::gloocomm

#endif // MEGA_RUNTIME_COMM_GLOOCOMMUNICATOR_H
