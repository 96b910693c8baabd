// What is fixed about a map: pictures of static ones, and how snakes are placed.
#pragma once

#include <vector>

#include "../board.h"
#include "id.h"

namespace snakekit {

enum class StartStyle : std::uint8_t {
  kShuffled,
  kQuadrants,  // a start from each quarter of the board before a second one from any
  kArcade,     // the outer four squares before the two in the middle
};

struct Layout {
  MapId map;
  int width;
  int height;
  int max_snakes;
  StartStyle style;
  std::vector<Point> hazards;  // a point once per layer
  std::vector<Point> starts;
  std::vector<Point> food;  // where food may appear; empty for maps without such a list
};

// Null for maps that are computed rather than drawn.
const Layout* find_layout(MapId map);

}  // namespace snakekit
