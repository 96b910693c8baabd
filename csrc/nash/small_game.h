// Regret matching of two seats with at most four actions each, all of it in registers.
#pragma once

#include "regret.h"

namespace snakekit {

// Differences of regret below this share of the weights so far are rounding, not preference:
// without it equally good actions would get an arbitrary pure strategy.
inline constexpr float kRounding = 1e-6F;

inline bool is_small(const StageShape& shape) {
  return shape.seats == 2 && shape.actions[0] <= 4 && shape.actions[1] <= 4;
}

// Writes the average policies of a small game; `fixed` as in StageSolver::solve.
void learn_small(const StageShape& shape, const float* utility, const RegretOptions& options,
                 float* policy, const float* const* fixed);

}  // namespace snakekit
