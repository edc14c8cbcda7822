#include "runtime/plan/Shape.h"

#include <fmt/format.h>

namespace mega {

std::string toString(const BufferType &type) {
  std::string text;
  for (int i = 0; i < type.rank; ++i) {
    text += fmt::format("{}x", type.dims[i]);
  }
  text += name(type.type);
  if (!type.isContiguous()) {
    text += fmt::format(" stride {}", type.rowStride);
  }
  return text;
}

} // namespace mega
