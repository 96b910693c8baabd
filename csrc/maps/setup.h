// How boards of one size begin.
#pragma once

#include <cstdint>
#include <vector>

#include "../board.h"
#include "id.h"

namespace snakekit {

struct SetUp {
  std::vector<Point> starts;
  std::vector<Point> food;
  std::vector<Point> hazards;
};

// Throws StateError where the map does not know the size, or the snakes do not fit.
SetUp set_up(MapId map, int width, int height, int snakes, int minimum_food, std::uint64_t seed);

}  // namespace snakekit
