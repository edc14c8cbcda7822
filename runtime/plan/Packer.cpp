#include "runtime/plan/Packer.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mega {

Packing pack(const std::vector<PackItem> &items, int64_t alignment) {
  Packing packing;
  packing.offsets.assign(items.size(), 0);
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(items[a].fixed >= 0, items[a].bytes) >
           std::pair(items[b].fixed >= 0, items[b].bytes);
  });
  const auto end = [&](size_t i) {
    return packing.offsets[i] +
           (items[i].bytes + alignment - 1) / alignment * alignment;
  };
  std::vector<size_t> placed;
  for (size_t index : order) {
    // Placed buffers that are alive at the same time, by offset.
    std::vector<size_t> busy;
    for (size_t other : placed) {
      if (items[other].first <= items[index].last &&
          items[index].first <= items[other].last) {
        busy.push_back(other);
      }
    }
    std::sort(busy.begin(), busy.end(), [&](size_t a, size_t b) {
      return packing.offsets[a] < packing.offsets[b];
    });
    int64_t offset = 0;
    for (size_t other : busy) {
      if (offset + items[index].bytes <= packing.offsets[other]) {
        break;
      }
      offset = std::max(offset, end(other));
    }
    packing.offsets[index] =
        items[index].fixed >= 0 ? items[index].fixed : offset;
    packing.bytes = std::max(packing.bytes, end(index));
    placed.push_back(index);
  }
  return packing;
}

} // namespace mega
