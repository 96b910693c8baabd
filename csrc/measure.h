// Loops for `snakekit bench`: what one thread does in a second, without Python in between.
#pragma once

#include <cstdint>
#include <vector>

#include "board.h"

namespace snakekit {

struct Measured {
  std::int64_t count = 0;
  double seconds = 0;
};

// Whole turns by the rules alone: games of random safe moves are recorded first, then stepped again
// from copies of their starts until `seconds` have passed. No food spawns.
Measured measure_turns(int width, int height, int snakes, std::uint64_t seed,
                       const Settings& settings, double seconds);

// Seconds to encode every living seat of one state, mean over all `boards` again and again until
// `seconds` have passed. The boards must be of one size.
double measure_encoder(const std::vector<const Board*>& boards, int version, double seconds);

}  // namespace snakekit
