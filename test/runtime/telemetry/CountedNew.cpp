#include "test/runtime/telemetry/CountedNew.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> count = 0;
} // namespace

int64_t mega::test::allocations() { return count; }

void *operator new(std::size_t size) {
  ++count;
  if (void *memory = std::malloc(size ? size : 1)) {
    return memory;
  }
  throw std::bad_alloc();
}

void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
