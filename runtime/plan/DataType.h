//===- DataType.h - Element types -------------------------------*- C++ -*-===//
//
// The element types a plan can hold, in one place for compiler and runtime.
// The numeric values are part of the plan format; append only.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_DATATYPE_H
#define MEGA_RUNTIME_PLAN_DATATYPE_H

#include <cstdint>
#include <string_view>

namespace mega {

enum class DataType : uint8_t {
  F32 = 0,
  BF16 = 1,
  F64 = 2,
  I32 = 3,
  I64 = 4,
};
inline constexpr int kDataTypeCount = 5;

/// Bytes of one element.
constexpr int64_t byteSize(DataType type) {
  switch (type) {
  case DataType::BF16:
    return 2;
  case DataType::F32:
  case DataType::I32:
    return 4;
  case DataType::F64:
  case DataType::I64:
    return 8;
  }
  return 0;
}

/// The spelling MLIR uses for the type.
constexpr std::string_view name(DataType type) {
  constexpr std::string_view names[] = {"f32", "bf16", "f64", "i32", "i64"};
  return names[static_cast<int>(type)];
}

constexpr bool isFloat(DataType type) {
  return type == DataType::F32 || type == DataType::BF16 ||
         type == DataType::F64;
}

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_DATATYPE_H
