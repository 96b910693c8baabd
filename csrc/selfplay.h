// Games of one table of weights against another, all in here: what tuning is made of.
#pragma once

#include <cstdint>
#include <vector>

#include "board.h"
#include "search/evaluate.h"
#include "search/search.h"

namespace snakekit {

struct SelfPlay {
  int width = 11;
  int height = 11;
  int snakes = 2;  // even
  Settings settings;
  Limits limits;           // of every search; not by time where games are to repeat
  int table_mb = 1;        // of every snake
  int max_turns = 1000;    // then the game is a draw
  int random_percent = 0;  // moves drawn among the safe ones instead of searched
  std::uint64_t seed = 0;
};

// A start is played with every way to seat as many snakes of one kind as of the other.
int line_ups(int snakes);

// Points of `a` in each game [starts * line_ups]: 1 where one of its snakes is the last to live,
// 0.5 for a draw. Starts are numbered from `first`; the results do not depend on `threads`.
std::vector<float> self_play(const Evaluation& a, const Evaluation& b, const SelfPlay& play,
                             std::int64_t first, int starts, int threads);

// Positions of games and how these ended, for fitting weights to results.
struct Positions {
  std::vector<Terms> terms;
  std::vector<std::int32_t> living;
  std::vector<float> result;  // 1 for the snake that wins, 0.5 for a duel's draw, else 0
  std::vector<std::int64_t> game;
};

// Every `every`th turn of `games` games, seen by each living snake, unless one of them has found
// that the game is decided.
Positions sample_positions(const Evaluation& evaluation, const SelfPlay& play, std::int64_t first,
                           int games, int every, int threads);

}  // namespace snakekit
