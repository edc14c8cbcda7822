//===- Memory.h - All planned memory of a rank ------------------*- C++ -*-===//
//
// One anonymous mapping that holds every region of a plan, in the plan's order,
// each aligned to 256 bytes and with its copies one after the other. Zeroed and
// touched when allocated, so that no step waits for a page; its size is the
// planned number of bytes. Owns the mapping; move-only.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CORE_MEMORY_H
#define MEGA_RUNTIME_CORE_MEMORY_H

#include "runtime/plan/Plan.h"
#include "runtime/plan/Status.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace mega {

/// Bytes this process can still take: the least of what the machine has
/// available and what its control group leaves; nothing if it cannot be told.
std::optional<uint64_t> availableMemory();

class Memory {
public:
  /// Code::Unavailable if planned memory and the plan's reserve, of a rank on
  /// each of `stages`, exceed `available` bytes.
  static Status checkAvailable(const plan::Plan &plan,
                               std::span<const int64_t> stages,
                               std::optional<uint64_t> available);
  /// Of a rank of the stage that `plan` is for. As checkAvailable, before
  /// anything is allocated.
  static StatusOr<Memory> allocate(const plan::Plan &plan,
                                   std::optional<uint64_t> available);

  Memory(Memory &&other) noexcept { swap(other); }
  Memory &operator=(Memory &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Memory();

  /// Start of copy `copy` of a region.
  std::byte *region(uint32_t index, uint32_t copy = 0) const {
    return data + regions[index].offset + copy * regions[index].stride;
  }
  /// Bytes from one copy of a region to the next.
  int64_t copyStride(uint32_t index) const { return regions[index].stride; }
  /// All regions with all copies: allocatedBytes of the plan.
  uint64_t bytes() const { return size; }

private:
  struct Region {
    int64_t offset;
    int64_t stride;
  };

  Memory() = default;
  void swap(Memory &other) noexcept {
    std::swap(data, other.data);
    std::swap(size, other.size);
    std::swap(regions, other.regions);
  }

  std::byte *data = nullptr;
  uint64_t size = 0;
  std::vector<Region> regions;
};

} // namespace mega

#endif // MEGA_RUNTIME_CORE_MEMORY_H
