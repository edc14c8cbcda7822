#include "runtime/plan/KernelExpect.h"

#include <cmath>

namespace mega::checks {

Status mismatch(std::string_view what, const BufferType &a,
                std::string_view other, const BufferType &b) {
  return badInput("{} is {} but {} is {}", what, toString(a), other,
                  toString(b));
}

static bool sameShape(const BufferType &a, const BufferType &b) {
  return a.rank == b.rank && a.dims == b.dims;
}

Status expectSameShape(Signature s, std::initializer_list<int> indices) {
  const int first = *indices.begin();
  for (int i : indices) {
    if (!sameShape(s.operands[i], s.operands[first])) {
      return mismatch("operand " + std::to_string(i), s.operands[i],
                      "operand " + std::to_string(first), s.operands[first]);
    }
  }
  return Status::ok();
}

Status expectType(Signature s, int index, DataType type) {
  if (s.operands[index].type != type) {
    return badInput("operand {} is {}, expected element type {}", index,
                    toString(s.operands[index]), name(type));
  }
  return Status::ok();
}

Status expectF32(Signature s, std::initializer_list<int> indices) {
  for (int i : indices) {
    MEGA_RETURN_IF_ERROR(expectType(s, i, DataType::F32));
  }
  return Status::ok();
}

Status expectOneType(Signature s, std::initializer_list<int> indices) {
  const int first = *indices.begin();
  for (int i : indices) {
    const DataType type = s.operands[i].type;
    if (type != DataType::F32 && type != DataType::BF16) {
      return badInput("operand {} is {}, expected f32 or bf16", i,
                      toString(s.operands[i]));
    }
    if (type != s.operands[first].type) {
      return badInput("operand {} is {}, expected {} like operand {}", i,
                      toString(s.operands[i]), name(s.operands[first].type),
                      first);
    }
  }
  return Status::ok();
}

Status expectContiguous(Signature s, std::initializer_list<int> indices) {
  for (int i : indices) {
    if (!s.operands[i].isContiguous()) {
      return badInput("operand {} is {}, expected contiguous rows", i,
                      toString(s.operands[i]));
    }
  }
  return Status::ok();
}

Status expectVector(Signature s, int index, int64_t extent) {
  const BufferType &type = s.operands[index];
  if (type.rank != 1 || type.dims[0] != extent) {
    return badInput("operand {} is {}, expected {} elements", index,
                    toString(type), extent);
  }
  return expectType(s, index, DataType::F32);
}

Status expectScalar(Signature s, int index, DataType type) {
  if (s.operands[index].elements() != 1) {
    return badInput("operand {} is {}, expected one element", index,
                    toString(s.operands[index]));
  }
  return expectType(s, index, type);
}

Status expectRowStatistics(Signature s, int of,
                           std::initializer_list<int> indices) {
  for (int i : indices) {
    const BufferType &type = s.operands[i];
    if (type.type != DataType::F32 ||
        type.elements() != s.operands[of].rows() || type.rank != 2) {
      return badInput("operand {} is {}, expected f32 statistics for the {} "
                      "rows of operand {}",
                      i, toString(type), s.operands[of].rows(), of);
    }
  }
  return expectContiguous(s, indices);
}

Status expectIds(Signature s, int index, int64_t rows) {
  MEGA_RETURN_IF_ERROR(expectType(s, index, DataType::I32));
  if (s.operands[index].rank != 2 || s.operands[index].elements() != rows) {
    return badInput("operand {} is {}, expected [batch, seq] with {} elements",
                    index, toString(s.operands[index]), rows);
  }
  return expectContiguous(s, {index});
}

Status expectPlaces(Signature s, int of, std::initializer_list<int> indices) {
  const BufferType &rows = s.operands[of];
  for (int i : indices) {
    const BufferType &type = s.operands[i];
    if (type.type != DataType::I32 || type.rank != 2 ||
        type.dims[0] != rows.dims[0] || type.dims[1] != rows.dims[1]) {
      return badInput("operand {} is {}, expected {}x{}xi32 as operand {} has "
                      "rows",
                      i, toString(type), rows.dims[0], rows.dims[1], of);
    }
  }
  return expectContiguous(s, indices);
}

Status expectRange(std::string_view what, int64_t value, int64_t low,
                   int64_t high) {
  if (value < low || value > high) {
    return badInput("{} is {}, expected {} to {}", what, value, low, high);
  }
  return Status::ok();
}

Status expectStart(Signature s, int index) {
  return expectRange("first element of the piece", s.integers[index], 0,
                     int64_t{1} << 40);
}

Status expectFinite(std::string_view what, double value) {
  if (!std::isfinite(value)) {
    return badInput("{} is {}, expected a finite number", what, value);
  }
  return Status::ok();
}

Status expectPositive(std::string_view what, double value) {
  if (!(value > 0) || !std::isfinite(value)) {
    return badInput("{} is {}, expected a positive number", what, value);
  }
  return Status::ok();
}

Status expectProbability(double p) {
  if (!(p >= 0 && p < 1)) {
    return badInput("dropout probability is {}, expected 0 <= p < 1", p);
  }
  return Status::ok();
}

Status expectSoftcap(double cap) {
  if (!(cap >= 0) || !std::isfinite(cap)) {
    return badInput("softcap is {}, expected 0 (off) or a positive number",
                    cap);
  }
  return Status::ok();
}

} // namespace mega::checks
