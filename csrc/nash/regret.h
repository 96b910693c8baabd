// Equilibria of one-shot games given by their payoffs: regret matching for any number of seats,
// and the exact solution of a zero-sum game of two.
//
// A game's utilities are utility[joint * seats + seat]; joint actions are numbered with the last
// seat's action running fastest. Policies lie one after the other, seat by seat.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace snakekit {

inline constexpr int kMaxStageSeats = 8;
inline constexpr int kFullInformation = 256;  // joint actions; beyond, Method::kAuto samples

struct StageShape {
  int seats = 0;
  std::array<int, kMaxStageSeats> actions{};

  [[nodiscard]] std::int64_t joints() const {
    std::int64_t n = 1;
    for (int s = 0; s < seats; ++s) n *= actions[s];
    return n;
  }
  [[nodiscard]] int policy_size() const {
    int n = 0;
    for (int s = 0; s < seats; ++s) n += actions[s];
    return n;
  }
};

enum class Method : std::uint8_t {
  kAuto,
  kFull,     // every iteration sees the expected utility of every action
  kSampled,  // every iteration draws one joint action and scores each alternative against it
  kExact,    // two seats only, taken as zero-sum: half the difference of the utilities
};

struct RegretOptions {
  int iterations = 256;
  Method method = Method::kAuto;
  bool linear = true;      // iteration t weighs t, in regrets and in the average strategy
  bool optimistic = true;  // the latest regret counts twice when the next strategy is formed
  std::uint64_t seed = 0;  // of Method::kSampled
};

// Room that solving many games needs again and again; one for each thread.
class StageSolver {
 public:
  // Writes the average policies, their expected utilities and their NashConv: the sum over the
  // seats of what a best response would gain. `fixed`, if given, has an entry for each seat: a
  // policy that the seat keeps, or null where it learns; the sum then runs over those that learn.
  void solve(const StageShape& shape, const float* utility, const RegretOptions& options,
             float* policy, float* value, float* gap, const float* const* fixed = nullptr);

  // Expected utility of every action against the others' policies: laid out as the policies.
  void action_values(const StageShape& shape, const float* utility, const float* policy,
                     float* values);

 private:
  void learn(const StageShape& shape, const float* utility, const RegretOptions& options,
             float* policy, const float* const* fixed);
  void sample(const StageShape& shape, const float* utility, const RegretOptions& options,
              float* policy, const float* const* fixed);
  void exact(const StageShape& shape, const float* utility, float* policy);

  std::vector<float> regret_, guess_, current_, average_, q_;
  std::vector<double> matrix_, tableau_, row_, col_;
};

// Optimal strategies of the zero-sum game whose first player gets matrix[i * n + j], and its
// value, by the simplex method. `room` is reused from call to call.
double solve_zero_sum(const double* matrix, int m, int n, double* row, double* col,
                      std::vector<double>& room);

}  // namespace snakekit
