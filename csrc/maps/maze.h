// solo_maze: a new maze each time the one food of the last has been eaten.
#pragma once

#include <array>
#include <cstdint>

#include "../board.h"
#include "../state.h"

namespace snakekit {

struct Maze {
  Point start;     // the head; the rest of the snake waits one square below
  Point entrance;  // may lie outside the maze's square
  Point food;
  std::array<std::uint8_t, Large::kCells> hazard;  // by cell, 0 or 1
};

// Level 0 is the first. A square of 7 and one more a level, as far as the board has room, in the
// middle of hazard; the bottom row is left free for the level in binary.
Maze make_maze(int width, int height, int level, std::uint64_t seed);

// Goes on to the next level if there is no food: hazards, food and the snake are set anew.
void next_maze(State<Large>& s, std::uint64_t seed);

}  // namespace snakekit
