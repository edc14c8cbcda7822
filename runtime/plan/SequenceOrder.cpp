#include "runtime/plan/SequenceOrder.h"

namespace mega {

Status checkPieces(bool zigzag, int64_t pieces, int64_t extent) {
  const int64_t runs = zigzag ? 2 * pieces : pieces;
  if (extent % runs == 0) {
    return Status::ok();
  }
  const int64_t below = extent / runs * runs;
  return badInput("{} does not divide into {}{} pieces{} (nearest: {}{})",
                  extent, zigzag ? "the two runs each of " : "", pieces,
                  zigzag ? " in zigzag" : "",
                  below == 0 ? "" : fmt::format("{}, ", below), below + runs);
}

} // namespace mega
