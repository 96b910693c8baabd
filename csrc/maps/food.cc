#include "food.h"

#include <array>
#include <cstdlib>

#include "../rng.h"
#include "layouts.h"

namespace snakekit {

namespace {

constexpr int kCastleFoodTurn = 10;

template <class T>
typename State<T>::Set free_squares(const State<T>& s, bool off_hazards) {
  auto blocked = s.h.food;
  if (off_hazards) blocked |= s.hazard;
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
  return ~blocked & s.geo->board;
}

// The dead block these squares too, as nowhere else.
template <class T>
bool taken(const State<T>& s, int cell, bool near_heads) {
  if (s.h.food.test(cell)) return true;
  const auto [x, y] = s.geo->point(cell);
  for (int i = 0; i < s.seats; ++i) {
    if (s.h.snake[i].body.test(cell)) return true;
    const auto [hx, hy] = s.geo->point(s.head(i));
    if (std::abs(hx - x) + std::abs(hy - y) <= (near_heads ? 1 : 0)) return true;
  }
  return false;
}

template <class T>
void spawn_from_list(State<T>& s, Rng& rng, bool near_heads) {
  const Layout* layout = find_layout(s.rules.map);
  // A request can name a map and show a board of another size.
  if (layout == nullptr || layout->width != s.geo->width || layout->height != s.geo->height) return;
  std::array<typename T::Cell, T::kCells> free;
  int n = 0;
  for (const auto& [x, y] : layout->food) {
    const auto cell = s.geo->code(x, y);
    if (!taken(s, cell, near_heads)) free[n++] = cell;
  }
  if (n > 0) s.add_food(free[rng.below(n)]);
}

}  // namespace

template <class T>
void spawn_by_rule(State<T>& s, std::uint64_t seed, bool off_hazards) {
  Rng rng(seed, static_cast<std::uint64_t>(s.h.turn));
  int wanted = 0;
  if (s.h.num_food < s.rules.minimum_food) {
    wanted = s.rules.minimum_food - s.h.num_food;
  } else if (s.rules.food_spawn_chance > 0 && 100 - rng.below(100) < s.rules.food_spawn_chance) {
    wanted = 1;
  }
  if (wanted == 0) return;
  std::array<typename T::Cell, T::kCells> cells;
  int n = 0;
  free_squares(s, off_hazards).for_each([&](int c) {
    cells[n++] = static_cast<typename T::Cell>(c);
  });
  for (; wanted > 0 && n > 0; --wanted) {
    const int i = rng.below(n);
    s.add_food(cells[i]);
    cells[i] = cells[--n];
  }
}

template <class T>
void spawn_castle_food(State<T>& s, std::uint64_t seed) {
  const int most = s.rules.map == MapId::kCastleWallXl ? 4 : 2;
  if (s.h.turn <= kCastleFoodTurn || s.h.num_food >= most) return;
  Rng rng(seed, static_cast<std::uint64_t>(s.h.turn));
  spawn_from_list(s, rng, true);
}

template <class T>
void spawn_arcade_food(State<T>& s, std::uint64_t seed) {
  Rng rng(seed, static_cast<std::uint64_t>(s.h.turn));
  const int chance = s.rules.food_spawn_chance;
  if (chance == 0 || rng.below(100) > chance) return;
  spawn_from_list(s, rng, false);
}

#define SNAKEKIT_FOOD(T)                                       \
  template void spawn_by_rule(State<T>&, std::uint64_t, bool); \
  template void spawn_castle_food(State<T>&, std::uint64_t);   \
  template void spawn_arcade_food(State<T>&, std::uint64_t)

SNAKEKIT_FOOD(Small);
SNAKEKIT_FOOD(Large);

}  // namespace snakekit
