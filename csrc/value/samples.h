// Positions of duels with what a deeper search makes of them: what a learned value is fitted to.
#pragma once

#include <cstdint>
#include <vector>

#include "../selfplay.h"

namespace snakekit {

struct Sampling {
  int share = 333;  // of a thousand turns
  // Most random turns made from there: the positions that a search judges are off the game's way.
  int wander = 4;
  std::int64_t label_nodes = 3000;  // of the search that says what a position is worth
};

// One position a row.
struct Labelled {
  std::vector<Features> rows;
  std::vector<std::int32_t> score;   // of the deeper search, for the seat that the rows are seen by
  std::vector<float> result;         // 1 where that seat won, 0.5 for a draw, else 0
  std::vector<std::uint8_t> played;  // the position occurred in the game, so `result` follows it
  std::vector<std::int64_t> game;
};

// Of `games` duels, numbered from `first`; the result does not depend on `threads`.
Labelled label_positions(const Evaluation& evaluation, const SelfPlay& play,
                         const Sampling& sampling, std::int64_t first, int games, int threads);

}  // namespace snakekit
