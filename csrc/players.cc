#include "players.h"

#include <array>

#include "area.h"
#include "rng.h"
#include "rules.h"

namespace snakekit {

namespace {

int nth_move(int mask, int n) {
  for (int m = 0; m < kMoves; ++m) {
    if (((mask >> m) & 1) != 0 && n-- == 0) return m;
  }
  return kUp;
}

template <class T>
int candidates(const State<T>& s, int seat) {
  if (const int safe = safe_mask(s, seat)) return safe;
  if (const int legal = legal_mask(s, seat)) return legal;
  return (1 << kMoves) - 1;
}

// Cells where a snake at least as long may arrive next turn.
template <class T>
typename State<T>::Set threats(const State<T>& s, int seat) {
  typename State<T>::Set r;
  for (int i = 0; i < s.seats; ++i) {
    if (i == seat || !s.alive(i) || s.h.snake[i].length < s.h.snake[seat].length) continue;
    for (const int c : s.geo->next[s.head(i)]) {
      if (s.on_board(c)) r.set(c);
    }
  }
  return r;
}

// Room and the nearest food behind each first step.
struct Outlook {
  int room = 0;
  int food = 0;  // turns, 0 for none in reach
};

template <class T>
Outlook look(const State<T>& s, int first) {
  Outlook o;
  typename State<T>::Set reach;
  reach.set(first);
  if (s.h.food.test(first)) o.food = 1;
  Vacating<T> bodies(s);
  bodies.advance();
  bool grew = true;
  while ((grew || !bodies.all_gone()) && bodies.turn() < kMaxArrival) {
    bodies.advance();
    const auto fresh = s.geo->neighbours(reach) & bodies.free() & ~reach;
    grew = fresh.any();
    reach |= fresh;
    if (o.food == 0 && (fresh & s.h.food).any()) o.food = bodies.turn();
  }
  o.room = reach.count();
  return o;
}

// Calls f(move, outlook, threatened) for each candidate.
template <class T, class F>
void for_candidates(const State<T>& s, int seat, F&& f) {
  const int mask = candidates(s, seat);
  const auto danger = threats(s, seat);
  for (int m = 0; m < kMoves; ++m) {
    if (((mask >> m) & 1) == 0) continue;
    const int to = s.geo->next[s.head(seat)][m];
    if (!s.on_board(to)) {
      f(m, Outlook{}, true);
      continue;
    }
    f(m, look(s, to), danger.test(to));
  }
}

}  // namespace

template <class T>
int reflex_move(const State<T>& s, int seat) {
  int best = kUp;
  int best_score = -1;
  for_candidates(s, seat, [&](int m, Outlook o, bool danger) {
    const int score = o.room * 2 + (danger ? 0 : 1000) + (o.food > 0 ? 1 : 0);
    if (score > best_score) {
      best_score = score;
      best = m;
    }
  });
  return best;
}

template <class T>
int random_move(const State<T>& s, int seat, std::uint64_t seed) {
  Rng rng(seed, static_cast<std::uint64_t>(s.h.turn) * 64 + static_cast<std::uint64_t>(seat));
  const int mask = candidates(s, seat);
  return nth_move(mask, rng.below(std::popcount(static_cast<unsigned>(mask))));
}

template <class T>
int greedy_move(const State<T>& s, int seat, std::uint64_t seed) {
  Rng rng(seed, static_cast<std::uint64_t>(s.h.turn) * 64 + static_cast<std::uint64_t>(seat));
  const int length = s.h.snake[seat].length;
  int best = kUp;
  int best_score = -1;
  for_candidates(s, seat, [&](int m, Outlook o, bool danger) {
    const int near = o.food > 0 ? 100 - o.food : 0;
    const int score =
        ((danger ? 0 : 100'000) + (o.room >= length ? 10'000 : 20 * o.room) + near * 16) * 4 +
        rng.below(4);
    if (score > best_score) {
      best_score = score;
      best = m;
    }
  });
  return best;
}

#define SNAKEKIT_PLAYERS(T)                                      \
  template int reflex_move(const State<T>&, int);                \
  template int random_move(const State<T>&, int, std::uint64_t); \
  template int greedy_move(const State<T>&, int, std::uint64_t)

SNAKEKIT_PLAYERS(Small);
SNAKEKIT_PLAYERS(Large);

}  // namespace snakekit
