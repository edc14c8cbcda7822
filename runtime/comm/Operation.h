//===- Operation.h - What a rank asks its group to do -----------*- C++ -*-===//
//
// One operation of one member: what all members have to agree on (kind, element
// type, count, reduction, root) and the member's own memory. Plain values.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_COMM_OPERATION_H
#define MEGA_RUNTIME_COMM_OPERATION_H

#include "runtime/plan/DataType.h"
#include "runtime/plan/Layout.h"
#include "runtime/plan/Status.h"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mega {

enum class OperationKind : uint8_t {
  AllReduce,
  ReduceScatter,
  AllGather,
  AllToAll,
  Broadcast,
  Barrier,
  Send,
  Receive,
};
std::string_view name(OperationKind kind);

/// The members of a group: their ranks in the world, in the group's order.
struct Group {
  std::string name;
  std::vector<int> ranks;
};

struct Operation {
  OperationKind kind = OperationKind::Barrier;
  DataType type = DataType::F32;
  Reduction reduction = Reduction::Sum;
  /// Group rank of the root of a broadcast; of the peer of a transfer.
  int32_t root = 0;
  /// As in the call: of one block where there are size() blocks.
  int64_t count = 0;
  const void *send = nullptr;
  void *receive = nullptr;

  /// Whether members that issue `*this` and `other` at one time mean the same.
  bool matches(const Operation &other) const {
    return kind == other.kind && type == other.type &&
           reduction == other.reduction && root == other.root &&
           count == other.count;
  }
  int64_t blockBytes() const { return count * byteSize(type); }
  /// Bytes that one member puts in, of `size` members.
  int64_t sendBytes(int size) const {
    return kind == OperationKind::ReduceScatter ||
                   kind == OperationKind::AllToAll
               ? size * blockBytes()
               : blockBytes();
  }
};

/// `all_reduce(sum of 10 x f32)`, `send(4 x bf16 to rank 3)`. `group` turns
/// roots and peers into ranks of the world.
std::string describe(const Operation &operation, const Group &group);

/// `group "dp": operation 3 differs: rank 0 calls ..., rank 2 calls ...`
Status mismatch(const Group &group, uint64_t number, int rankA,
                const Operation &a, int rankB, const Operation &b);
/// `group "dp": ... (operation 3): ranks 1 and 2 have not come within 0.5 s`
Status missing(const Group &group, uint64_t number, const Operation &operation,
               std::span<const int> groupRanks,
               std::chrono::milliseconds limit);
/// The same for a transfer whose peer posted nothing to meet it.
Status unmet(const Group &group, uint64_t number, const Operation &operation,
             std::chrono::milliseconds limit);

/// `rank 3`, `ranks 1, 2 and 5`.
std::string listRanks(std::span<const int> ranks);

/// `status` once more; Status itself only moves.
Status copy(const Status &status);

} // namespace mega

#endif // MEGA_RUNTIME_COMM_OPERATION_H
