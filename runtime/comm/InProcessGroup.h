//===- InProcessGroup.h - What the members of a group share -----*- C++ -*-===//
//
// Private to the in-process implementation. One operation goes like this:
//
//   publish    each member writes its operation (kind, count, pointers) and, if
//              it is small, its data into its own slot, and arrives
//   match      the last to arrive compares all operations and releases them
//   move       small: every member reads all slots and makes its own result
//              large: the work of all members is one list of chunks; members
//              that are awake take chunks until none is left, reading and
//              writing the other members' memory directly
//   leave      small: at once
//              large: when all chunks are done, whoever did them
//
// Slots and operations exist twice and are used in turn: a member that is in
// operation k + 2 knows that all have arrived at k + 1, so none reads k's.
// Only `publish` can block for long. Releasing and giving up exclude each
// other, and once released an operation completes even if the world fails
// meanwhile: no member returns while another one uses its memory.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_COMM_INPROCESSGROUP_H
#define MEGA_RUNTIME_COMM_INPROCESSGROUP_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/Failure.h"
#include "runtime/comm/InProcessTransfers.h"
#include "runtime/comm/Signal.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace mega::inprocess {

/// What one member puts into an operation that goes through slots, at most.
inline constexpr int64_t kSlotBytes = 8192;
/// Members beyond this many are refused, so that lists of pointers can be
/// local.
inline constexpr int kMaxMembers = 1024;

struct Group;

/// What all groups share.
struct World {
  int ranks = 0;
  CommunicatorOptions options;
  int spins = 0;
  Failure failure;

  /// Sets the root cause and wakes all waiting members.
  void fail(const Status &cause);

  std::mutex mutex;
  std::vector<Group *> groups;
};

struct alignas(64) Member {
  /// Operations that this member has begun.
  std::atomic<uint64_t> begun{0};
  std::array<Operation, 2> operations;
  std::array<std::unique_ptr<std::byte[]>, 2> slots;
};

struct Group {
  Group(std::shared_ptr<World> world, mega::Group info);
  ~Group();

  int size() const { return static_cast<int>(info.ranks.size()); }
  /// Runs operation `number` (1, 2, ...) of member `rank`.
  Status run(int rank, uint64_t number, const Operation &operation);
  void wakeAll();

  std::shared_ptr<World> world;
  mega::Group info;
  std::vector<Member> members;
  Transfers transfers;

private:
  /// All members have published: compares, then releases or fails the world.
  void match(uint64_t number);
  std::vector<int> missingMembers(uint64_t number) const;
  void moveSmall(int rank, uint64_t number) const;
  void moveLarge(int rank, uint64_t number);
  void moveChunk(int64_t chunk, uint64_t number) const;

  alignas(64) std::atomic<int> arrived{0};
  /// The last operation that all have published and that matched; kNever once a
  /// member has left one without it.
  std::atomic<uint64_t> released{0};
  static constexpr uint64_t kNever = ~uint64_t(0);
  Signal release;
  alignas(64) std::atomic<int64_t> nextChunk{0};
  alignas(64) std::atomic<int64_t> doneChunks{0};
  /// The last large operation whose chunks are done.
  std::atomic<uint64_t> completed{0};
  Signal completion;
};

} // namespace mega::inprocess

#endif // MEGA_RUNTIME_COMM_INPROCESSGROUP_H
