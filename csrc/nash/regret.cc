#include "regret.h"

#include <algorithm>
#include <numeric>

#include "../rng.h"

namespace snakekit {

namespace {

// Differences of regret below this share of the weights so far are rounding, not preference:
// without it equally good actions would get an arbitrary pure strategy.
constexpr float kRounding = 1e-6F;

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

// Two seats with at most four actions each, in registers.
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
  if (shape.seats == 2 && shape.actions[0] <= 4 && shape.actions[1] <= 4) {
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

namespace {

constexpr double kTiny = 1e-12;

// The simplex tableau of max sum(y) with A y <= 1 and y >= 0: a line for each row of A with its
// slack, then the line of reduced costs; the last column holds the right side.
struct Tableau {
  double* cells;
  int m;
  int width;
  std::vector<int> basis;

  [[nodiscard]] double* line(int i) const { return cells + static_cast<std::ptrdiff_t>(i) * width; }
  [[nodiscard]] double right(int i) const { return line(i)[width - 1]; }

  // By Bland's rule, so that degenerate games end as well; -1 when there is none.
  [[nodiscard]] int entering() const {
    const double* cost = line(m);
    for (int k = 0; k < width - 1; ++k) {
      if (cost[k] < -kTiny) return k;
    }
    return -1;
  }
  [[nodiscard]] int leaving(int enter) const {
    int leave = -1;
    double least = 0;
    for (int i = 0; i < m; ++i) {
      if (line(i)[enter] <= kTiny) continue;
      const double ratio = right(i) / line(i)[enter];
      const bool less = leave < 0 || ratio < least - kTiny;
      if (!less && (ratio > least + kTiny || basis[i] > basis[leave])) continue;
      leave = i;
      least = ratio;
    }
    return leave;
  }
  void pivot(int leave, int enter) {
    double* own = line(leave);
    const double scale = 1 / own[enter];
    for (int k = 0; k < width; ++k) own[k] *= scale;
    for (int i = 0; i <= m; ++i) {
      const double factor = line(i)[enter];
      if (i == leave || factor == 0) continue;
      for (int k = 0; k < width; ++k) line(i)[k] -= factor * own[k];
    }
    basis[leave] = enter;
  }
};

}  // namespace

double solve_zero_sum(const double* matrix, int m, int n, double* row, double* col,
                      std::vector<double>& room) {
  const auto cells = static_cast<std::ptrdiff_t>(m) * n;
  // With all payoffs positive the value is positive, and the largest sum(y) is 1 / value.
  const double shift = 1 - *std::min_element(matrix, matrix + cells);
  const int width = n + m + 1;
  room.assign(static_cast<std::size_t>(m + 1) * width, 0);
  Tableau tableau{room.data(), m, width, std::vector<int>(m)};
  for (int i = 0; i < m; ++i) {
    double* line = tableau.line(i);
    for (int j = 0; j < n; ++j) line[j] = matrix[static_cast<std::ptrdiff_t>(i) * n + j] + shift;
    line[n + i] = 1;
    line[width - 1] = 1;
    tableau.basis[i] = n + i;
  }
  std::fill_n(tableau.line(m), n, -1.0);
  for (int enter = tableau.entering(); enter >= 0; enter = tableau.entering())
    tableau.pivot(tableau.leaving(enter), enter);
  const double total = tableau.right(m);
  std::fill_n(col, n, 0.0);
  for (int i = 0; i < m; ++i) {
    if (tableau.basis[i] < n) col[tableau.basis[i]] = std::max(0.0, tableau.right(i) / total);
    row[i] = std::max(0.0, tableau.line(m)[n + i] / total);
  }
  return 1 / total - shift;
}

}  // namespace snakekit
