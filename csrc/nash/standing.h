// What the search's evaluation makes of a position and of the next turn, for all living seats:
// its learned value where there is one, else its weights.
//
// Both are copies: an observation must not change when the search is tuned. The flood, the terms
// and the features are the search's own, so a change to them is a new version of the observation.
#pragma once

#include <array>
#include <cstdint>

#include "../search/evaluate.h"
#include "../state.h"
#include "roster.h"

namespace snakekit {

inline constexpr EvalWeights kStandingWeights{
    {143, 24, -1042, 2550, 2122, 1541, 271, 38, -112, -1893, 186, -1331, -32, 0},
    {137, -25, -755, 1863, 2797, 1736, 934, 90, -44, -2261, 727, -582, -32, -5884}};

// Scores: kEvalMax bounds those of open positions.
inline constexpr int kStandingEnd = 2047;    // won; -kStandingEnd is lost
inline constexpr int kStandingDraw = -1000;  // as the search sees it
// Scores at which hope is tanh(1): of the weights, and of the learned value, whose scores are 600
// times the logit of winning.
inline constexpr int kWeighedHope = 400;
inline constexpr int kLearnedHope = 1200;
inline constexpr int kMostJoints = 81;  // joint moves looked at: four seats with three each

// Hopes are 127 tanh(score / kWeighedHope or kLearnedHope), -127..127.
struct Standing {
  int now = 0;
  int hope_now = 0;
  std::array<std::int16_t, kMoves> worst{};  // after a move and the worst reply of the others
  std::array<std::int16_t, kMoves> hope{};   // mean over all their replies
};

// By slot of the roster, which are all living seats. Replies that are certain death count only
// where a seat has no other, and a move that is one is lost. With more joint moves than
// kMostJoints, and after the end, all moves that are not certain death are worth as much as the
// position.
template <class T>
void stand(const State<T>& s, const Roster& roster, std::array<Standing, kMaxSlots>& out);

}  // namespace snakekit
