// Static evaluation: who owns which space, who is longer, who starves; by a table of weights, or by
// a network where there is one for the rules.
#pragma once

#include <algorithm>
#include <array>

#include "../value/network.h"
#include "flood.h"
#include "weights.h"

namespace snakekit {

inline constexpr int kEvalMax = 1900;
inline constexpr int kEvalUnit = 16;
inline constexpr int kLengthCap = 8;
inline constexpr int kNearFood = 20;  // turns within which food attracts

using Terms = std::array<std::int16_t, kTerms>;

// One snake's own values of the terms.
template <class T>
inline Terms outlook(const State<T>& s, int i, const Prospect<T>& p) {
  const auto& snake = s.h.snake[i];
  std::array<int, kTerms> t{};
  t[Term::kArea] = p.room;
  t[Term::kInner] = (p.reach & s.geo->inner).count();
  t[Term::kClosed] = p.closed ? 1 : 0;
  t[Term::kShort] = p.closed ? snake.length - p.room : 0;
  t[Term::kCentre] = s.geo->depth[s.head(i)];
  if (!s.rules.constrictor) {
    t[Term::kHealth] = snake.health / 10;
    t[Term::kFoods] = (p.reach & s.h.food).count();
    t[Term::kFood] = p.food_turn == 0 ? 0 : std::max(0, kNearFood - p.food_turn);
    t[Term::kHungry] =
        snake.health < 30 ? 2 * t[Term::kFood] : (snake.health < 60 ? t[Term::kFood] : 0);
    if (p.food_turn == 0 || p.food_turn > snake.health)
      t[Term::kStarving] = std::max(0, 40 - snake.health);
    if (s.rules.hazard_damage > 0 && s.hazard.test(s.head(i)))
      t[Term::kHazard] = s.rules.hazard_damage * s.layers[s.head(i)];
  }
  Terms r;
  for (int k = 0; k < kTerms; ++k) r[k] = static_cast<std::int16_t>(t[k]);
  return r;
}

// Turns a snake's own values `t` into what weighs for it, given the sums of its `others`' values.
template <class T>
inline void compare(const State<T>& s, int us, int others, const std::array<int, kTerms>& theirs,
                    Terms& t) {
  if (others == 0) return;
  int longest = 0;
  for (int i = 0; i < s.seats; ++i) {
    if (i != us && s.alive(i)) longest = std::max<int>(longest, s.h.snake[i].length);
  }
  for (int k = 0; k < kTerms; ++k) {
    const int mean = others > 1 ? theirs[k] / others : theirs[k];
    t[k] = static_cast<std::int16_t>(t[k] - mean);
  }
  const int ahead = s.h.snake[us].length - longest;
  t[Term::kLength] = static_cast<std::int16_t>(std::clamp(ahead, -kLengthCap, kLengthCap));
  t[Term::kLonger] = static_cast<std::int16_t>((ahead > 0 ? 1 : 0) - (ahead < 0 ? 1 : 0));
  t[Term::kOthers] = static_cast<std::int16_t>(others - 1);
}

// What weighs in a position for `us`, who is alive.
template <class T>
inline Terms evaluation_terms(const State<T>& s, int us, const Flood<T>& flood) {
  Terms t = outlook(s, us, flood.of[us]);
  std::array<int, kTerms> theirs{};
  int others = 0;
  for (int i = 0; i < s.seats; ++i) {
    if (i == us || !s.alive(i)) continue;
    ++others;
    const Terms of_other = outlook(s, i, flood.of[i]);
    for (int k = 0; k < kTerms; ++k) theirs[k] += of_other[k];
  }
  compare(s, us, others, theirs, t);
  return t;
}
template <class T>
inline Terms evaluation_terms(const State<T>& s, int us) {
  return evaluation_terms(s, us, Flood<T>(s));
}

// The weighted sum of `t`, in -kEvalMax..kEvalMax.
template <class T>
inline int weigh(const State<T>& s, const Terms& t, const EvalWeights& w) {
  const auto& table = s.living() > 2 ? w.many : w.duel;
  int score = 0;
  for (int k = 0; k < kTerms; ++k) score += table[k] * t[k];
  return std::clamp(score / kEvalUnit, -kEvalMax, kEvalMax);
}

// How positions are judged.
struct Evaluation {
  EvalWeights weights;
  std::shared_ptr<const LearnedValue> learned;  // null: by the weights alone

  static Evaluation shipped() { return {{}, shipped_value()}; }
};

// The position for `us`, who is alive, in -kEvalMax..kEvalMax.
template <class T>
inline int evaluate(const State<T>& s, int us, const Evaluation& e) {
  const Flood<T> flood(s);
  if (e.learned && LearnedValue::knows(s))
    return std::clamp((*e.learned)(s, us, flood), -kEvalMax, kEvalMax);
  return weigh(s, evaluation_terms(s, us, flood), e.weights);
}

}  // namespace snakekit
