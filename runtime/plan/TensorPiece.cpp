#include "runtime/plan/TensorPiece.h"

namespace mega {

TensorPiece::TensorPiece(std::span<const int64_t> shape, const Layout &layout,
                         const Mesh &mesh, int64_t rank)
    : rank_(static_cast<int>(shape.size())) {
  for (int d = 0; d < rank_; ++d) {
    whole[d] = shape[d];
    local[d] = layout.localExtent(d, shape[d], mesh);
    first[d] = layout.shard(d, mesh, rank) * local[d];
    if (local[d] != whole[d]) {
      cut = d;
    }
  }
  for (int d = cut + 1; d < rank_; ++d) {
    inner *= whole[d];
  }
}

int64_t TensorPiece::elements() const {
  return local[0] * local[1] * local[2] * local[3];
}

int64_t TensorPiece::wholeElements() const {
  return whole[0] * whole[1] * whole[2] * whole[3];
}

TensorPiece::Run TensorPiece::runAt(int64_t flat) const {
  const int64_t inRow = flat % inner;
  int64_t rest = flat / inner;
  const int64_t index = rest % local[cut];
  rest /= local[cut];
  const int64_t toEnd = (local[cut] - index) * inner - inRow;
  // Of dimension `cut`, elements before this one are in the whole.
  const int64_t valid =
      std::clamp<int64_t>(whole[cut] - first[cut], 0, local[cut]);
  if (index >= valid) {
    return {-1, toEnd};
  }
  int64_t at = (first[cut] + index) * inner + inRow;
  int64_t stride = whole[cut] * inner;
  for (int d = cut - 1; d >= 0; --d) {
    const int64_t global = first[d] + rest % local[d];
    if (global >= whole[d]) {
      return {-1, toEnd};
    }
    at += global * stride;
    stride *= whole[d];
    rest /= local[d];
  }
  return {at, (valid - index) * inner - inRow};
}

} // namespace mega
