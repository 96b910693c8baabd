#include "maps.h"

#include <algorithm>
#include <array>

#include "rng.h"

namespace snakekit {

namespace {

template <class C>
void shuffle(C& c, Rng& rng) {
  for (int i = static_cast<int>(c.size()) - 1; i > 0; --i) std::swap(c[i], c[rng.below(i + 1)]);
}

std::vector<Point> start_squares(int width, int height, std::size_t n, Rng& rng) {
  const int mx = (width - 1) / 2;
  const int my = (height - 1) / 2;
  const int hx = width - 2;
  const int hy = height - 2;
  std::vector<Point> corners{{1, 1}, {1, hy}, {hx, 1}, {hx, hy}};
  std::vector<Point> edges{{1, my}, {mx, hy}, {hx, my}, {mx, 1}};
  shuffle(corners, rng);
  shuffle(edges, rng);
  const bool corners_first = rng.below(2) == 0;
  auto& first = corners_first ? corners : edges;
  auto& second = corners_first ? edges : corners;
  std::vector<Point> all(first);
  all.insert(all.end(), second.begin(), second.end());
  std::vector<Point> distinct;
  for (const auto& p : all) {
    if (std::find(distinct.begin(), distinct.end(), p) == distinct.end()) distinct.push_back(p);
  }
  if (n > distinct.size()) {
    throw StateError("snakes: " + std::to_string(n) + " do not fit the start squares of a " +
                     std::to_string(width) + "x" + std::to_string(height) + " board");
  }
  distinct.resize(n);
  return distinct;
}

// One food a step away diagonally, away from the centre where that is possible and never in a
// corner of the board, as the official set-up does.
std::vector<Point> start_food(int width, int height, const std::vector<Point>& starts, Rng& rng) {
  const Point centre{(width - 1) / 2, (height - 1) / 2};
  std::vector<Point> food;
  const auto taken = [&](Point p) {
    return p == centre || std::find(food.begin(), food.end(), p) != food.end() ||
           std::find(starts.begin(), starts.end(), p) != starts.end();
  };
  for (const auto& [x, y] : starts) {
    std::vector<Point> choices;
    for (const int dx : {-1, 1}) {
      for (const int dy : {-1, 1}) {
        const Point p{x + dx, y + dy};
        if (p.first < 0 || p.second < 0 || p.first >= width || p.second >= height || taken(p))
          continue;
        const bool away_x = (x < centre.first && p.first < x) || (x > centre.first && p.first > x);
        const bool away_y =
            (y < centre.second && p.second < y) || (y > centre.second && p.second > y);
        const bool corner =
            (p.first == 0 || p.first == width - 1) && (p.second == 0 || p.second == height - 1);
        if ((away_x || away_y) && !corner) choices.push_back(p);
      }
    }
    if (!choices.empty()) food.push_back(choices[rng.below(static_cast<int>(choices.size()))]);
  }
  if (std::find(starts.begin(), starts.end(), centre) == starts.end()) food.push_back(centre);
  return food;
}

}  // namespace

Board new_game(int width, int height, const std::vector<std::string>& ids, std::uint64_t seed,
               const Settings& settings) {
  if (width < kMinSide || width > kMaxSide || height < kMinSide || height > kMaxSide)
    throw StateError("width, height: " + std::to_string(width) + "x" + std::to_string(height) +
                     " is outside 3x3..25x25");
  Rng rng(seed, 0x57a7);
  const auto starts = start_squares(width, height, ids.size(), rng);
  std::vector<Snake> snakes;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Snake s;
    s.id = ids[i];
    s.body.assign(3, starts[i]);
    snakes.push_back(s);
  }
  const auto food = start_food(width, height, starts, rng);
  Board board(width, height, snakes, food, {}, 0, settings);
  board.visit([](auto& s) { initialise(s); });
  return board;
}

template <class T>
void spawn_food(State<T>& s, std::uint64_t seed) {
  Rng rng(seed, static_cast<std::uint64_t>(s.h.turn));
  int wanted = 0;
  if (s.h.num_food < s.rules.minimum_food) {
    wanted = s.rules.minimum_food - s.h.num_food;
  } else if (s.rules.food_spawn_chance > 0 && 100 - rng.below(100) < s.rules.food_spawn_chance) {
    wanted = 1;
  }
  if (wanted == 0) return;
  auto blocked = s.h.food;
  for (int i = 0; i < s.seats; ++i) {
    if (!s.alive(i)) continue;
    blocked |= s.h.snake[i].body;
    const int head = s.head(i);
    blocked.set(head);
    for (const int c : s.geo->next[head]) {
      // Wrapping does not protect the far side, and a wall has no square behind it.
      const auto [x, y] = s.geo->point(head);
      if (!s.on_board(c)) continue;
      const auto [cx, cy] = s.geo->point(c);
      if (std::abs(cx - x) + std::abs(cy - y) == 1) blocked.set(c);
    }
  }
  const auto free = ~blocked & s.geo->board;
  std::array<typename T::Cell, T::kCells> cells;
  int n = 0;
  free.for_each([&](int c) { cells[n++] = static_cast<typename T::Cell>(c); });
  for (; wanted > 0 && n > 0; --wanted) {
    const int i = rng.below(n);
    s.add_food(cells[i]);
    cells[i] = cells[--n];
  }
}

template void spawn_food(State<Small>&, std::uint64_t);
template void spawn_food(State<Large>&, std::uint64_t);

}  // namespace snakekit
