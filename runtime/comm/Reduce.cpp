#include "runtime/comm/Reduce.h"

#include "runtime/plan/BFloat16.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace mega {
namespace {

/// Bytes of the accumulators of one block: they, and one block of each source,
/// are in the second-level cache together.
constexpr int64_t kBlockBytes = 8192;

/// Integers wrap around; signed overflow would be undefined.
template <typename T> T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

struct Sum {
  template <typename T> static T apply(T a, T b) { return add(a, b); }
};
// `b != b` holds for a NaN only.
struct Max {
  template <typename T> static T apply(T a, T b) {
    return (b > a) | (b != b) ? b : a;
  }
};
struct Min {
  template <typename T> static T apply(T a, T b) {
    return (b < a) | (b != b) ? b : a;
  }
};
struct Or {
  template <typename T> static T apply(T a, T b) { return a | b; }
};

/// Whether a block of an output is in the cache because it was just read.
bool isSource(const void *output, std::span<const void *const> sources) {
  return std::find(sources.begin(), sources.end(), output) != sources.end();
}

/// Past the cache: the destination is not read first.
void copyAround(void *to, const void *from, size_t bytes) {
#if defined(__SSE2__)
  auto *out = static_cast<char *>(to);
  const auto *in = static_cast<const char *>(from);
  const size_t head =
      std::min(bytes, -reinterpret_cast<uintptr_t>(to) % sizeof(__m128i));
  std::memcpy(out, in, head);
  size_t i = head;
  for (; i + sizeof(__m128i) <= bytes; i += sizeof(__m128i)) {
    _mm_stream_si128(
        reinterpret_cast<__m128i *>(out + i),
        _mm_loadu_si128(reinterpret_cast<const __m128i *>(in + i)));
  }
  std::memcpy(out + i, in + i, bytes - i);
  // These stores are ordered with later ones only by a fence.
  _mm_sfence();
#else
  std::memcpy(to, from, bytes);
#endif
}

template <typename Element, typename Wide, typename Combine>
void reduceBlocks(std::span<const void *const> sources,
                  std::span<void *const> outputs, int64_t count, bool large) {
  constexpr int64_t kBlock = kBlockBytes / sizeof(Wide);
  constexpr bool kNarrows = !std::is_same_v<Element, Wide>;
  // As far apart from planned memory, in pages, as that from itself: copies
  // that are misaligned by a few bytes run at a twentieth of the speed on
  // Zen 4.
  alignas(256) Wide block[kBlock];
  alignas(256) Element narrow[kNarrows ? kBlock : 1];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t length = std::min(kBlock, count - begin);
    const auto *first = static_cast<const Element *>(sources[0]) + begin;
    for (int64_t i = 0; i < length; ++i) {
      block[i] = static_cast<Wide>(first[i]);
    }
    for (const void *source : sources.subspan(1)) {
      const auto *next = static_cast<const Element *>(source) + begin;
      for (int64_t i = 0; i < length; ++i) {
        block[i] = Combine::apply(block[i], static_cast<Wide>(next[i]));
      }
    }
    const void *result = block;
    if constexpr (kNarrows) {
      for (int64_t i = 0; i < length; ++i) {
        narrow[i] = Element(block[i]);
      }
      result = narrow;
    }
    for (void *output : outputs) {
      Element *to = static_cast<Element *>(output) + begin;
      if (large && !isSource(output, sources)) {
        copyAround(to, result, length * sizeof(Element));
      } else {
        std::memcpy(to, result, length * sizeof(Element));
      }
    }
  }
}

template <typename Element, typename Wide = Element>
void reduceType(std::span<const void *const> sources,
                std::span<void *const> outputs, int64_t count,
                Reduction reduction, bool large) {
  switch (reduction) {
  case Reduction::Sum:
    return reduceBlocks<Element, Wide, Sum>(sources, outputs, count, large);
  case Reduction::Max:
    return reduceBlocks<Element, Wide, Max>(sources, outputs, count, large);
  case Reduction::Min:
    return reduceBlocks<Element, Wide, Min>(sources, outputs, count, large);
  case Reduction::Or:
    if constexpr (std::is_integral_v<Element>) {
      return reduceBlocks<Element, Wide, Or>(sources, outputs, count, large);
    }
    assert(false && "`or` is for integers");
  }
}

} // namespace

void reduce(std::span<const void *const> sources,
            std::span<void *const> outputs, int64_t count, DataType type,
            Reduction reduction, bool large) {
  switch (type) {
  case DataType::F32:
    return reduceType<float>(sources, outputs, count, reduction, large);
  case DataType::BF16:
    return reduceType<BFloat16, float>(sources, outputs, count, reduction,
                                       large);
  case DataType::F64:
    return reduceType<double>(sources, outputs, count, reduction, large);
  case DataType::I32:
    return reduceType<int32_t>(sources, outputs, count, reduction, large);
  case DataType::I64:
    return reduceType<int64_t>(sources, outputs, count, reduction, large);
  }
}

} // namespace mega
