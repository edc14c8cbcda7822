#include "test/runtime/reference/Reference.h"

#include <cmath>

namespace mega::reference {

AdamWState adamW(AdamWState state, double grad, double scale, bool decay,
                 const StepScalars &s) {
  const double beta1 = s.beta1, beta2 = s.beta2;
  grad *= scale;
  state.moment = beta1 * state.moment + (1 - beta1) * grad;
  state.variance = beta2 * state.variance + (1 - beta2) * grad * grad;
  const double moment = state.moment / (1 - std::pow(beta1, s.step));
  const double variance = state.variance / (1 - std::pow(beta2, s.step));
  double update = moment / (std::sqrt(variance) + s.epsilon);
  if (decay) {
    update += s.weightDecay * state.weight;
  }
  state.weight -= s.lr * update;
  return state;
}

} // namespace mega::reference
