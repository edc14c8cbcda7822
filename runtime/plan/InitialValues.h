//===- InitialValues.h - Initial weights ------------------------*- C++ -*-===//
//
// The initial value of a parameter element is a pure function of
//
//   (seed, parameter name, global index of the element),
//
// so a shard of any layout starts from the same bits as the whole matrix. The
// arithmetic is integer Philox followed by +, -, *, / and sqrt in double, each
// exactly rounded, compiled without contraction to FMA: every host gives the
// same bits, whatever its libm. The global index is row-major in the logical,
// unpadded shape.
//
//   word(i)    = philox({i / 4, 0, 0}, mixKey(seed, hashName(name)))[i % 4]
//   u(i)       = (word(i) + 1/2) / 2^32, in (0, 1)
//   normal(i)  = mean + std * inverseNormal(u(i)), so |z| < 6.4
//   uniform(i) = low + (high - low) * u(i)
//
// All functions are pure and may be called from any thread.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_INITIALVALUES_H
#define MEGA_RUNTIME_PLAN_INITIALVALUES_H

#include <cstdint>
#include <span>
#include <string_view>

namespace mega {

/// The numeric values are part of the plan format; append only.
enum class InitialKind : uint8_t {
  Zeros = 0,
  Ones = 1,
  /// first: the value.
  Constant = 2,
  /// first: the mean; second: the standard deviation.
  Normal = 3,
  /// first: the lower bound; second: the upper bound.
  Uniform = 4,
};
inline constexpr int kInitialKindCount = 5;

struct InitialValue {
  InitialKind kind = InitialKind::Zeros;
  double first = 0;
  double second = 0;

  static InitialValue zeros() { return {}; }
  static InitialValue ones() { return {InitialKind::Ones}; }
  static InitialValue constant(double value) {
    return {InitialKind::Constant, value};
  }
  static InitialValue normal(double std, double mean = 0) {
    return {InitialKind::Normal, mean, std};
  }
  static InitialValue uniform(double low, double high) {
    return {InitialKind::Uniform, low, high};
  }
};

/// Writes elements [firstGlobalIndex, firstGlobalIndex + out.size()) of the
/// parameter. Call it once per contiguous run of a shard.
void fillInitialValues(std::span<float> out, const InitialValue &value,
                       uint64_t seed, std::string_view parameterName,
                       int64_t firstGlobalIndex);

/// fillInitialValues with InitialValue::normal(std, mean).
void fillNormal(std::span<float> out, uint64_t seed,
                std::string_view parameterName, int64_t firstGlobalIndex,
                double mean, double std);

/// Quantile of the standard normal distribution for 2^-36 <= p <= 1 - 2^-36,
/// to about 1e-15 relative: the rational approximations of Wichura, "Algorithm
/// AS 241: The Percentage Points of the Normal Distribution" (1988).
double inverseNormal(double p);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_INITIALVALUES_H
