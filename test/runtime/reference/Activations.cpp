#include "test/runtime/reference/Reference.h"

#include <cmath>

namespace mega::reference {
namespace {
constexpr double kPi = 3.14159265358979323846;
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
} // namespace

double gelu(GeluKind kind, double x) {
  if (kind == GeluKind::Erf) {
    return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
  }
  const double u = std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(u));
}

double geluGrad(GeluKind kind, double x) {
  if (kind == GeluKind::Erf) {
    return 0.5 * std::erfc(-x / std::sqrt(2.0)) +
           x * std::exp(-x * x / 2) / std::sqrt(2 * kPi);
  }
  const double u = std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x);
  const double du = std::sqrt(2 / kPi) * (1 + 3 * 0.044715 * x * x);
  const double t = std::tanh(u);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du;
}

double silu(double x) { return x * sigmoid(x); }

double siluGrad(double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }

double gate(GateKind kind, double x) {
  return kind == GateKind::Silu       ? silu(x)
         : kind == GateKind::GeluTanh ? gelu(GeluKind::Tanh, x)
                                      : gelu(GeluKind::Erf, x);
}

double gateGrad(GateKind kind, double x) {
  return kind == GateKind::Silu       ? siluGrad(x)
         : kind == GateKind::GeluTanh ? geluGrad(GeluKind::Tanh, x)
                                      : geluGrad(GeluKind::Erf, x);
}

bool keepsActivation(uint64_t key, double p, int64_t sample, int64_t position,
                     int64_t feature) {
  return philox(activationCounter(sample, position, feature / 4),
                toPhiloxKey(key))[feature % 4] >= dropoutThreshold(p);
}

bool keepsAttention(uint64_t key, double p, int64_t sample, int64_t head,
                    int64_t query, int64_t keyIndex) {
  return philox(attentionCounter(sample, head, query, keyIndex / 4),
                toPhiloxKey(key))[keyIndex % 4] >= dropoutThreshold(p);
}

} // namespace mega::reference
