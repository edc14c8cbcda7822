#include "test/runtime/reference/Reference.h"

#include <cmath>

namespace mega::reference {

Norm layerNorm(const Values &x, const Values &gamma, const Values &beta,
               double epsilon) {
  const size_t n = gamma.size();
  Norm norm{Values(x.size()), {}, {}};
  for (size_t begin = 0; begin < x.size(); begin += n) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < n; ++i) {
      mean += x[begin + i] / n;
    }
    for (size_t i = 0; i < n; ++i) {
      variance += (x[begin + i] - mean) * (x[begin + i] - mean) / n;
    }
    const double rstd = 1 / std::sqrt(variance + epsilon);
    for (size_t i = 0; i < n; ++i) {
      norm.y[begin + i] = (x[begin + i] - mean) * rstd * gamma[i] + beta[i];
    }
    norm.mean.push_back(mean);
    norm.rstd.push_back(rstd);
  }
  return norm;
}

NormGrad layerNormGrad(const Values &gradY, const Values &x,
                       const Values &gamma, double epsilon) {
  const size_t n = gamma.size();
  const Norm norm = layerNorm(x, gamma, Values(n, 0.0), epsilon);
  NormGrad grad{Values(x.size()), Values(n, 0.0), Values(n, 0.0)};
  for (size_t begin = 0; begin < x.size(); begin += n) {
    const double mean = norm.mean[begin / n], rstd = norm.rstd[begin / n];
    double sum = 0, sumXhat = 0;
    for (size_t i = 0; i < n; ++i) {
      const double xhat = (x[begin + i] - mean) * rstd;
      const double g = gradY[begin + i] * gamma[i];
      sum += g;
      sumXhat += g * xhat;
      grad.gamma[i] += gradY[begin + i] * xhat;
      grad.beta[i] += gradY[begin + i];
    }
    for (size_t i = 0; i < n; ++i) {
      const double xhat = (x[begin + i] - mean) * rstd;
      grad.x[begin + i] =
          rstd * (gradY[begin + i] * gamma[i] - sum / n - xhat * sumXhat / n);
    }
  }
  return grad;
}

Norm rmsNorm(const Values &x, const Values &gamma, double epsilon,
             double offset) {
  const size_t n = gamma.size();
  Norm norm{Values(x.size()), {}, {}};
  for (size_t begin = 0; begin < x.size(); begin += n) {
    double square = 0;
    for (size_t i = 0; i < n; ++i) {
      square += x[begin + i] * x[begin + i] / n;
    }
    const double rstd = 1 / std::sqrt(square + epsilon);
    for (size_t i = 0; i < n; ++i) {
      norm.y[begin + i] = x[begin + i] * rstd * (offset + gamma[i]);
    }
    norm.rstd.push_back(rstd);
  }
  return norm;
}

NormGrad rmsNormGrad(const Values &gradY, const Values &x, const Values &gamma,
                     double epsilon, double offset) {
  const size_t n = gamma.size();
  const Norm norm = rmsNorm(x, gamma, epsilon, offset);
  NormGrad grad{Values(x.size()), Values(n, 0.0), {}};
  for (size_t begin = 0; begin < x.size(); begin += n) {
    const double rstd = norm.rstd[begin / n];
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      const double xhat = x[begin + i] * rstd;
      sum += gradY[begin + i] * (offset + gamma[i]) * xhat;
      grad.gamma[i] += gradY[begin + i] * xhat;
    }
    for (size_t i = 0; i < n; ++i) {
      grad.x[begin + i] = rstd * (gradY[begin + i] * (offset + gamma[i]) -
                                  x[begin + i] * rstd * sum / n);
    }
  }
  return grad;
}

} // namespace mega::reference
