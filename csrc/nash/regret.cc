#include "regret.h"

#include <algorithm>
#include <numeric>

#include "../rng.h"
#include "small_game.h"

namespace snakekit {

namespace {

// Turns regrets into a strategy: in proportion to the positive ones, or the actions of best regret.
void match(const float* regret, int n, float rounding, float* strategy) {
  float sum = 0;
  for (int a = 0; a < n; ++a) {
    strategy[a] = std::max(regret[a] - rounding, 0.0F);
    sum += strategy[a];
  }
  if (!(sum > 0)) {
    const float best = *std::max_element(regret, regret + n) - rounding;
    for (int a = 0; a < n; ++a) {
      strategy[a] = regret[a] >= best ? 1.0F : 0.0F;
      sum += strategy[a];
    }
  }
  const float scale = 1.0F / sum;
  for (int a = 0; a < n; ++a) strategy[a] *= scale;
}

void start_uniform(const StageShape& shape, float* strategy, const float* const* fixed) {
  for (int s = 0; s < shape.seats; ++s) {
    const int n = shape.actions[s];
    if (fixed != nullptr && fixed[s] != nullptr) {
      std::copy_n(fixed[s], n, strategy);
    } else {
      std::fill_n(strategy, n, 1.0F / static_cast<float>(n));
    }
    strategy += n;
  }
}

void normalise(const StageShape& shape, const float* sums, float* policy) {
  for (int s = 0; s < shape.seats; ++s) {
    const int n = shape.actions[s];
    const float total = std::accumulate(sums, sums + n, 0.0F);
    for (int a = 0; a < n; ++a) policy[a] = sums[a] / total;
    sums += n;
    policy += n;
  }
}

// Places of the seats' policies in the row of all policies.
std::array<int, kMaxStageSeats + 1> offsets(const StageShape& shape) {
  std::array<int, kMaxStageSeats + 1> at{};
  for (int s = 0; s < shape.seats; ++s) at[s + 1] = at[s] + shape.actions[s];
  return at;
}

// Calls f(joint, actions) for every joint action.
template <class F>
void for_each_joint(const StageShape& shape, F&& f) {
  std::array<int, kMaxStageSeats> at{};
  const std::int64_t n = shape.joints();
  for (std::int64_t joint = 0; joint < n; ++joint) {
    f(joint, at);
    for (int s = shape.seats - 1; s >= 0; --s) {
      if (++at[s] < shape.actions[s]) break;
      at[s] = 0;
    }
  }
}

void two_seat_values(const StageShape& shape, const float* utility, const float* policy, float* q) {
  const int m = shape.actions[0];
  const int n = shape.actions[1];
  const float* other = policy + m;
  std::fill_n(q, m + n, 0.0F);
  for (int i = 0; i < m; ++i) {
    const float* u = utility + static_cast<std::ptrdiff_t>(i) * n * 2;
    const float weight = policy[i];
    float mine = 0;
    for (int j = 0; j < n; ++j) {
      mine += u[2 * j] * other[j];
      q[m + j] += u[2 * j + 1] * weight;
    }
    q[i] = mine;
  }
}

int draw(const float* strategy, int n, Rng& rng) {
  float x = static_cast<float>(rng.next() >> 40) * 0x1p-24F;
  for (int a = 0; a + 1 < n; ++a) {
    x -= strategy[a];
    if (x < 0) return a;
  }
  return n - 1;
}

}  // namespace

void StageSolver::action_values(const StageShape& shape, const float* utility, const float* policy,
                                float* values) {
  if (shape.seats == 2) {
    two_seat_values(shape, utility, policy, values);
    return;
  }
  const int seats = shape.seats;
  const auto at = offsets(shape);
  std::fill_n(values, at[seats], 0.0F);
  for_each_joint(shape, [&](std::int64_t joint, const auto& actions) {
    std::array<float, kMaxStageSeats + 1> before;  // product of the probabilities of seats < s
    before[0] = 1;
    for (int s = 0; s < seats; ++s) before[s + 1] = before[s] * policy[at[s] + actions[s]];
    const float* u = utility + joint * seats;
    float after = 1;
    for (int s = seats - 1; s >= 0; --s) {
      values[at[s] + actions[s]] += before[s] * after * u[s];
      after *= policy[at[s] + actions[s]];
    }
  });
}

void StageSolver::learn(const StageShape& shape, const float* utility, const RegretOptions& options,
                        float* policy, const float* const* fixed) {
  if (is_small(shape)) {
    learn_small(shape, utility, options, policy, fixed);
    return;
  }
  const auto at = offsets(shape);
  const int size = at[shape.seats];
  regret_.assign(size, 0);
  average_.assign(size, 0);
  guess_.resize(size);
  current_.resize(size);
  q_.resize(size);
  start_uniform(shape, current_.data(), fixed);
  const float latest = options.optimistic ? 2.0F : 1.0F;
  float total = 0;
  for (int t = 1; t <= options.iterations; ++t) {
    const float weight = options.linear ? static_cast<float>(t) : 1.0F;
    total += weight;
    for (int a = 0; a < size; ++a) average_[a] += weight * current_[a];
    action_values(shape, utility, current_.data(), q_.data());
    for (int s = 0; s < shape.seats; ++s) {
      if (fixed != nullptr && fixed[s] != nullptr) continue;
      float mean = 0;
      for (int a = at[s]; a < at[s + 1]; ++a) mean += q_[a] * current_[a];
      for (int a = at[s]; a < at[s + 1]; ++a) {
        const float gained = weight * (q_[a] - mean);
        guess_[a] = regret_[a] + latest * gained;
        regret_[a] += gained;
      }
      match(&guess_[at[s]], shape.actions[s], total * kRounding, &current_[at[s]]);
    }
  }
  normalise(shape, average_.data(), policy);
}

void StageSolver::sample(const StageShape& shape, const float* utility,
                         const RegretOptions& options, float* policy, const float* const* fixed) {
  const int seats = shape.seats;
  const auto at = offsets(shape);
  const int size = at[seats];
  regret_.assign(size, 0);
  average_.assign(size, 0);
  guess_.resize(size);
  current_.resize(size);
  start_uniform(shape, current_.data(), fixed);
  std::array<std::int64_t, kMaxStageSeats> stride{};
  std::int64_t step = 1;
  for (int s = seats - 1; s >= 0; --s) {
    stride[s] = step;
    step *= shape.actions[s];
  }
  Rng rng(options.seed);
  const float latest = options.optimistic ? 2.0F : 1.0F;
  float total = 0;
  for (int t = 1; t <= options.iterations; ++t) {
    const float weight = options.linear ? static_cast<float>(t) : 1.0F;
    total += weight;
    for (int a = 0; a < size; ++a) average_[a] += weight * current_[a];
    std::array<int, kMaxStageSeats> drawn{};
    std::int64_t joint = 0;
    for (int s = 0; s < seats; ++s) {
      drawn[s] = draw(&current_[at[s]], shape.actions[s], rng);
      joint += drawn[s] * stride[s];
    }
    for (int s = 0; s < seats; ++s) {
      if (fixed != nullptr && fixed[s] != nullptr) continue;
      const float* u = utility + (joint - drawn[s] * stride[s]) * seats + s;
      float mean = 0;
      for (int a = 0; a < shape.actions[s]; ++a)
        mean += u[a * stride[s] * seats] * current_[at[s] + a];
      for (int a = 0; a < shape.actions[s]; ++a) {
        const float gained = weight * (u[a * stride[s] * seats] - mean);
        guess_[at[s] + a] = regret_[at[s] + a] + latest * gained;
        regret_[at[s] + a] += gained;
      }
      match(&guess_[at[s]], shape.actions[s], total * kRounding, &current_[at[s]]);
    }
  }
  normalise(shape, average_.data(), policy);
}

void StageSolver::exact(const StageShape& shape, const float* utility, float* policy) {
  const int m = shape.actions[0];
  const int n = shape.actions[1];
  matrix_.resize(static_cast<std::size_t>(m) * n);
  for (int k = 0; k < m * n; ++k)
    matrix_[k] = 0.5 * (static_cast<double>(utility[2 * k]) - utility[2 * k + 1]);
  row_.resize(m);
  col_.resize(n);
  solve_zero_sum(matrix_.data(), m, n, row_.data(), col_.data(), tableau_);
  std::transform(row_.begin(), row_.end(), policy, [](double p) { return static_cast<float>(p); });
  std::transform(col_.begin(), col_.end(), policy + m,
                 [](double p) { return static_cast<float>(p); });
}

void StageSolver::solve(const StageShape& shape, const float* utility, const RegretOptions& options,
                        float* policy, float* value, float* gap, const float* const* fixed) {
  const bool sampled = options.method == Method::kSampled ||
                       (options.method == Method::kAuto && shape.joints() > kFullInformation);
  if (options.method == Method::kExact) {
    exact(shape, utility, policy);
  } else if (sampled) {
    sample(shape, utility, options, policy, fixed);
  } else {
    learn(shape, utility, options, policy, fixed);
  }
  q_.resize(shape.policy_size());
  action_values(shape, utility, policy, q_.data());
  const float* q = q_.data();
  *gap = 0;
  for (int s = 0; s < shape.seats; ++s) {
    const int n = shape.actions[s];
    value[s] = std::inner_product(q, q + n, policy, 0.0F);
    if (fixed == nullptr || fixed[s] == nullptr)
      *gap += std::max(0.0F, *std::max_element(q, q + n) - value[s]);
    q += n;
    policy += n;
  }
}

}  // namespace snakekit
