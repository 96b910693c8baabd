// Static evaluation: who owns which space, who is longer, who starves.
#pragma once

#include <algorithm>
#include <array>

#include "../area.h"
#include "../state.h"
#include "weights.h"

namespace snakekit {

inline constexpr int kEvalMax = 1900;
inline constexpr int kFloodTurns = 48;

template <class T>
struct Flood {
  using Set = Bits<T::kWords>;
  std::array<Set, T::kSnakes> reach;
  int food_turn = 0;  // when we first own food, 0 never

  Flood(const State<T>& s, int us) {
    std::array<int, T::kSnakes> seat;
    int n = 0;
    Set taken;
    for (int i = 0; i < s.seats; ++i) {
      if (!s.alive(i)) continue;
      seat[n++] = i;
      reach[i].set(s.head(i));
      taken.set(s.head(i));
    }
    Vacating<T> bodies(s);
    std::array<Set, T::kSnakes> fresh;
    bool grew = true;
    while ((grew || !bodies.all_gone()) && bodies.turn() < kFloodTurns) {
      bodies.advance();
      const Set open = bodies.free() & ~taken;
      grew = false;
      for (int k = 0; k < n; ++k) {
        fresh[k] = s.geo->neighbours(reach[seat[k]]) & open;
        taken |= fresh[k];
      }
      for (int k = 0; k < n; ++k) {
        Set own = fresh[k];
        for (int j = 0; j < n; ++j) {
          if (j != k && s.h.snake[seat[j]].length >= s.h.snake[seat[k]].length) own &= ~fresh[j];
        }
        if (!own.any()) continue;
        grew = true;
        reach[seat[k]] |= own;
        if (seat[k] == us && food_turn == 0 && (own & s.h.food).any()) food_turn = bodies.turn();
      }
    }
  }
};

// The position for `us`, who is alive, in -kEvalMax..kEvalMax.
template <class T>
int evaluate(const State<T>& s, int us, const EvalWeights& w) {
  const Flood<T> flood(s, us);
  const auto& me = s.h.snake[us];
  const int mine = flood.reach[us].count();
  int others = 0;
  int living = 0;
  int longest_other = 0;
  for (int i = 0; i < s.seats; ++i) {
    if (i == us || !s.alive(i)) continue;
    ++living;
    others += flood.reach[i].count();
    longest_other = std::max<int>(longest_other, s.h.snake[i].length);
  }
  int score = w.cell * (living == 0 ? mine : mine - others / living);
  if (mine < me.length) score -= w.trapped * (me.length - mine);
  if (living > 0) {
    const int ahead = me.length - longest_other;
    score += w.length * std::clamp(ahead, -w.length_cap, w.length_cap);
    if (ahead > 0) score += w.longest;
    score -= w.opponent * (living - 1);
  }
  if (!s.rules.constrictor) {
    const int hunger = me.health < 30 ? 3 : (me.health < 60 ? 2 : 1);
    if (flood.food_turn > 0) score += w.food * hunger * std::max(0, 20 - flood.food_turn);
    if (me.health < 40 && (flood.food_turn == 0 || flood.food_turn > me.health))
      score -= w.starving * (40 - me.health) / 40;
  }
  if (s.hazard.any() && s.rules.hazard_damage > 0 && s.hazard.test(s.head(us)))
    score -= 2 * s.rules.hazard_damage * s.layers[s.head(us)];
  return std::clamp(score, -kEvalMax, kEvalMax);
}

}  // namespace snakekit
