#include "small_game.h"

#include <algorithm>
#include <array>

namespace snakekit {

namespace {

using Four = float __attribute__((vector_size(16)));

float sum(Four v) { return (v[0] + v[1]) + (v[2] + v[3]); }

struct SmallSeat {
  std::array<Four, 4> utility{};  // by the other's action: utilities of ours
  Four mask{};
  Four regret{};
  Four strategy{};
  Four average{};
  int n;
  bool fixed = false;

  explicit SmallSeat(int actions) : n(actions) {
    for (int a = 0; a < n; ++a) {
      mask[a] = 1;
      strategy[a] = 1.0F / static_cast<float>(n);
    }
  }
  void keep(const float* policy) {
    fixed = true;
    for (int a = 0; a < n; ++a) strategy[a] = policy[a];
  }
  [[nodiscard]] Four values(Four other) const {
    return (utility[0] * other[0] + utility[1] * other[1]) +
           (utility[2] * other[2] + utility[3] * other[3]);
  }
  void update(Four q, float weight, float latest, float rounding) {
    const Four gained = (q - sum(q * strategy)) * mask * weight;
    regret += gained;
    const Four guess = regret + gained * latest;
    const Four zero{};
    Four positive = guess - rounding;
    positive = positive > zero ? positive * mask : zero;
    float total = sum(positive);
    if (!(total > 0)) [[unlikely]] {
      float best = guess[0];
      for (int a = 1; a < n; ++a) best = std::max(best, guess[a]);
      positive = guess >= zero + (best - rounding) ? mask : zero;
      total = sum(positive);
    }
    strategy = positive * (1.0F / total);
  }
};

}  // namespace

void learn_small(const StageShape& shape, const float* utility, const RegretOptions& options,
                 float* policy, const float* const* fixed) {
  SmallSeat a(shape.actions[0]);
  SmallSeat b(shape.actions[1]);
  for (int i = 0; i < a.n; ++i) {
    for (int j = 0; j < b.n; ++j) {
      const float* u = utility + (i * b.n + j) * 2;
      a.utility[j][i] = u[0];
      b.utility[i][j] = u[1];
    }
  }
  if (fixed != nullptr && fixed[0] != nullptr) a.keep(fixed[0]);
  if (fixed != nullptr && fixed[1] != nullptr) b.keep(fixed[1]);
  const float latest = options.optimistic ? 1.0F : 0.0F;
  float total = 0;
  for (int t = 1; t <= options.iterations; ++t) {
    const float weight = options.linear ? static_cast<float>(t) : 1.0F;
    total += weight;
    a.average += a.strategy * weight;
    b.average += b.strategy * weight;
    const Four qa = a.values(b.strategy);
    const Four qb = b.values(a.strategy);
    if (!a.fixed) a.update(qa, weight, latest, total * kRounding);
    if (!b.fixed) b.update(qb, weight, latest, total * kRounding);
  }
  for (int i = 0; i < a.n; ++i) policy[i] = a.average[i] / total;
  for (int j = 0; j < b.n; ++j) policy[a.n + j] = b.average[j] / total;
}

}  // namespace snakekit
