#include "maze.h"

#include <algorithm>

#include "random.h"

namespace snakekit {

namespace {

constexpr int kFirstSide = 7;

struct Room {
  int x0, x1, y0, y1;
};

// Walls stand on odd squares of the maze and have their gap on an even one, so that no later wall
// can close a gap.
int odd_between(Rng& rng, int low, int high) { return low + 1 + 2 * rng.below((high - low) / 2); }
int even_from(Rng& rng, int low, int high) { return low + 2 * rng.below((high - low) / 2 + 1); }

void divide(Maze& maze, int width, int side, Rng& rng) {
  const auto wall = [&](int x, int y) {
    maze.hazard[(maze.start.second + y) * width + maze.start.first + x] = 1;
  };
  std::array<Room, Large::kCells> todo;
  int n = 0;
  todo[n++] = {0, side - 1, 0, side - 1};
  while (n > 0) {
    const Room r = todo[--n];
    const int w = r.x1 - r.x0;
    const int h = r.y1 - r.y0;
    if (w < 2 || h < 2) continue;
    const bool upright = w == h ? rng.below(2) == 0 : w > h;
    if (upright) {
      const int x = odd_between(rng, r.x0, r.x1);
      const int gap = even_from(rng, r.y0, r.y1);
      for (int y = r.y0; y <= r.y1; ++y) {
        if (y != gap) wall(x, y);
      }
      todo[n++] = {r.x0, x - 1, r.y0, r.y1};
      todo[n++] = {x + 1, r.x1, r.y0, r.y1};
    } else {
      const int y = odd_between(rng, r.y0, r.y1);
      const int gap = even_from(rng, r.x0, r.x1);
      for (int x = r.x0; x <= r.x1; ++x) {
        if (x != gap) wall(x, y);
      }
      todo[n++] = {r.x0, r.x1, r.y0, y - 1};
      todo[n++] = {r.x0, r.x1, y + 1, r.y1};
    }
  }
}

// The food is somewhere in the maze but not under the head.
Point pick_food(const Maze& maze, int width, int side, Rng& rng) {
  Point at = maze.start;
  int seen = 0;
  for (int y = maze.start.second; y < maze.start.second + side; ++y) {
    for (int x = maze.start.first; x < maze.start.first + side; ++x) {
      if (maze.hazard[y * width + x] != 0 || Point{x, y} == maze.start) continue;
      if (rng.below(++seen) == 0) at = {x, y};
    }
  }
  return at;
}

int read_level(const State<Large>& s) {
  int level = 0;
  for (int x = 0; x < s.geo->width; ++x) level = 2 * level + (s.layers[x] != 0 ? 1 : 0);
  return level;
}

}  // namespace

Maze make_maze(int width, int height, int level, std::uint64_t seed) {
  const int side = std::min({level + kFirstSide, height - 2, width});
  Rng rng = stream(seed, Stream::kMaze, static_cast<std::uint64_t>(level));
  Maze maze;
  maze.start = {(width - side) / 2, (height - side) / 2};
  maze.entrance = {maze.start.first, maze.start.second - 1};
  maze.hazard.fill(0);
  for (int y = 1; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool open = x >= maze.start.first && x < maze.start.first + side &&
                        y >= maze.start.second && y < maze.start.second + side;
      maze.hazard[y * width + x] = open || Point{x, y} == maze.entrance ? 0 : 1;
    }
  }
  divide(maze, width, side, rng);
  for (int x = width - 1; x >= 0; --x, level /= 2)
    maze.hazard[x] = static_cast<std::uint8_t>(level % 2);
  maze.food = pick_food(maze, width, side, rng);
  return maze;
}

void next_maze(State<Large>& s, std::uint64_t seed) {
  const int width = s.geo->width;
  const int height = s.geo->height;
  if (s.h.num_food > 0 || s.seats != 1 || width < kFirstSide || height < kFirstSide) return;
  int level = read_level(s) + 1;
  // A number too long for the row loses its last digit.
  if (level >> width != 0) level /= 2;
  const Maze maze = make_maze(width, height, level, seed);
  s.layers.fill(0);
  std::copy_n(maze.hazard.begin(), s.geo->cells, s.layers.begin());
  s.food[0] = s.geo->code(maze.food.first, maze.food.second);
  s.h.num_food = 1;
  auto& k = s.h.snake[0];
  k.front = 0;
  s.ring[0].fill(s.geo->code(maze.entrance.first, maze.entrance.second));
  s.ring[0][0] = s.geo->code(maze.start.first, maze.start.second);
  s.rebuild();
}

}  // namespace snakekit
