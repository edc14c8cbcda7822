// Compiled with -ffp-contract=off (see CMakeLists.txt): a fused multiply-add
// would round differently from host to host.
#include "runtime/plan/InitialValues.h"

#include "runtime/plan/Philox.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mega {

namespace {

/// Horner's rule, the constant coefficient first.
template <size_t n>
double polynomial(const double (&coefficients)[n], double x) {
  double sum = coefficients[n - 1];
  for (size_t i = n - 1; i-- > 0;) {
    sum = sum * x + coefficients[i];
  }
  return sum;
}

/// Natural logarithm of a normal x > 0: x = 2^e m with m in [sqrt(1/2),
/// sqrt(2)), and log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.1716, as
/// its odd Taylor series up to s^23.
double logarithm(double x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  constexpr double kSqrt2 = 0x1.6a09e667f3bcdp+0;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m =
      std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  if (m > kSqrt2) {
    m *= 0.5;
    ++exponent;
  }
  constexpr double kSeries[] = {2.0,        2.0 / 3.0,  2.0 / 5.0,  2.0 / 7.0,
                                2.0 / 9.0,  2.0 / 11.0, 2.0 / 13.0, 2.0 / 15.0,
                                2.0 / 17.0, 2.0 / 19.0, 2.0 / 21.0, 2.0 / 23.0};
  const double s = (m - 1.0) / (m + 1.0);
  return exponent * kLn2 + s * polynomial(kSeries, s * s);
}

/// Centre: |p - 1/2| <= 0.425, in r = 0.425^2 - (p - 1/2)^2.
constexpr double kCentreNumerator[] = {
    3.3871328727963666080e+0, 1.3314166789178437745e+2,
    1.9715909503065514427e+3, 1.3731693765509461125e+4,
    4.5921953931549871457e+4, 6.7265770927008700853e+4,
    3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr double kCentreDenominator[] = {1.0,
                                         4.2313330701600911252e+1,
                                         6.8718700749205790830e+2,
                                         5.3941960214247511077e+3,
                                         2.1213794301586595867e+4,
                                         3.9307895800092710610e+4,
                                         2.8729085735721942674e+4,
                                         5.2264952788528545610e+3};

/// Tail: r = sqrt(-log(min(p, 1 - p))) - 1.6 with r <= 3.4, that is, down to
/// p = exp(-25) < 2^-36.
constexpr double kTailNumerator[] = {
    1.42343711074968357734e+0, 4.63033784615654529590e+0,
    5.76949722146069140550e+0, 3.64784832476320460504e+0,
    1.27045825245236838258e+0, 2.41780725177450611770e-1,
    2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double kTailDenominator[] = {1.0,
                                       2.05319162663775882187e+0,
                                       1.67638483018380384940e+0,
                                       6.89767334985100004550e-1,
                                       1.48103976427480074590e-1,
                                       1.51986665636164571966e-2,
                                       5.47593808499534494600e-4,
                                       1.05075007164441684324e-9};

/// Calls transform(u) for each element's uniform number, four per counter.
template <typename Transform>
void generate(std::span<float> out, uint64_t seed, std::string_view name,
              int64_t first, Transform transform) {
  const PhiloxKey key = toPhiloxKey(mixKey(seed, hashName(name)));
  PhiloxCounter words = {};
  uint64_t index = static_cast<uint64_t>(first);
  bool stale = true;
  for (float &value : out) {
    if (stale || index % 4 == 0) {
      const uint64_t quad = index / 4;
      words = philox({static_cast<uint32_t>(quad),
                      static_cast<uint32_t>(quad >> 32), 0, 0},
                     key);
      stale = false;
    }
    const double u = (words[index % 4] + 0.5) * 0x1p-32;
    value = static_cast<float>(transform(u));
    ++index;
  }
}

} // namespace

double inverseNormal(double p) {
  const double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kCentreNumerator, r) /
           polynomial(kCentreDenominator, r);
  }
  const double tail = q < 0 ? p : 1.0 - p;
  const double r = std::sqrt(-logarithm(tail)) - 1.6;
  const double z =
      polynomial(kTailNumerator, r) / polynomial(kTailDenominator, r);
  return q < 0 ? -z : z;
}

void fillInitialValues(std::span<float> out, const InitialValue &value,
                       uint64_t seed, std::string_view parameterName,
                       int64_t firstGlobalIndex) {
  const double first = value.first;
  const double second = value.second;
  switch (value.kind) {
  case InitialKind::Zeros:
    std::ranges::fill(out, 0.0f);
    return;
  case InitialKind::Ones:
    std::ranges::fill(out, 1.0f);
    return;
  case InitialKind::Constant:
    std::ranges::fill(out, static_cast<float>(first));
    return;
  case InitialKind::Normal:
    generate(out, seed, parameterName, firstGlobalIndex,
             [=](double u) { return first + second * inverseNormal(u); });
    return;
  case InitialKind::Uniform:
    generate(out, seed, parameterName, firstGlobalIndex,
             [=](double u) { return first + (second - first) * u; });
    return;
  }
}

void fillNormal(std::span<float> out, uint64_t seed,
                std::string_view parameterName, int64_t firstGlobalIndex,
                double mean, double std) {
  fillInitialValues(out, InitialValue::normal(std, mean), seed, parameterName,
                    firstGlobalIndex);
}

} // namespace mega
