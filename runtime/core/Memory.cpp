//===- Memory.cpp - All planned memory of a rank --------------------------===//
#include "runtime/core/Memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

namespace mega {
namespace {

/// Large mappings in large pages: fewer misses in the TLB.
constexpr uint64_t kHugePagesFrom = uint64_t{64} << 20;

std::optional<uint64_t> readNumber(const char *path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

std::optional<uint64_t> machineMemory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("MemAvailable:", 0) == 0) {
      return std::stoull(line.substr(13)) * 1024;
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<uint64_t> availableMemory() {
  std::optional<uint64_t> available = machineMemory();
  const auto limit = readNumber("/sys/fs/cgroup/memory.max");
  const auto used = readNumber("/sys/fs/cgroup/memory.current");
  if (limit && used) {
    const uint64_t left = *limit > *used ? *limit - *used : 0;
    available = std::min(available.value_or(left), left);
  }
  return available;
}

Status Memory::checkAvailable(const plan::Plan &plan,
                              std::span<const int64_t> stages,
                              std::optional<uint64_t> available) {
  if (!available) {
    return Status::ok();
  }
  // Together they may exceed 64 bits.
  uint64_t left = *available;
  uint64_t most = 0;
  bool fits = true;
  for (const int64_t stage : stages) {
    const plan::Plan &own = stagePlan(plan, stage);
    const uint64_t needed = allocatedBytes(own) + own.reserve_bytes();
    most = std::max(most, needed);
    fits &= needed <= left;
    left -= std::min(left, needed);
  }
  if (fits) {
    return Status::ok();
  }
  return makeError(
      Code::Unavailable,
      "the plan needs {} bytes of memory ({} planned and {} in reserve){}, {} "
      "are available",
      most, most - plan.reserve_bytes(), plan.reserve_bytes(),
      stages.size() > 1 ? fmt::format(" on each of {} ranks{}", stages.size(),
                                      stageCount(plan) > 1 ? ", at most" : "")
                        : "",
      *available);
}

StatusOr<Memory> Memory::allocate(const plan::Plan &plan,
                                  std::optional<uint64_t> available) {
  const int64_t own[] = {0};
  MEGA_RETURN_IF_ERROR(checkAvailable(plan, own, available));
  const uint64_t planned = allocatedBytes(plan);
  Memory memory;
  for (uint32_t i = 0; i < length(plan.regions()); ++i) {
    const plan::Region &region = *plan.regions()->Get(i);
    const uint64_t bytes = allocatedBytes(region);
    memory.regions.push_back({static_cast<int64_t>(memory.size),
                              static_cast<int64_t>(bytes / region.copies())});
    memory.size += bytes;
  }
  if (memory.size != planned) {
    return makeError(Code::Internal, "allocated {} bytes of memory, planned {}",
                     memory.size, planned);
  }
  if (planned == 0) {
    return memory;
  }
  void *mapped = mmap(nullptr, planned, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return makeError(Code::Unavailable, "cannot allocate {} bytes: {}", planned,
                     std::strerror(errno));
  }
  memory.data = static_cast<std::byte *>(mapped);
  if (planned >= kHugePagesFrom) {
    madvise(mapped, planned, MADV_HUGEPAGE);
  }
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (uint64_t at = 0; at < planned; at += page) {
    *const_cast<volatile std::byte *>(memory.data + at) = std::byte{0};
  }
  return memory;
}

Memory::~Memory() {
  if (data) {
    munmap(data, size);
  }
}

} // namespace mega
