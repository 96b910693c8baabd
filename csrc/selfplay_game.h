// One game of searches against each other.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "maps.h"
#include "players.h"
#include "rng.h"
#include "selfplay.h"

namespace snakekit {

inline constexpr int kDecidedScore = kWinScore - kProofMargin;

inline Board start_of(const SelfPlay& play, std::uint64_t seed) {
  std::vector<std::string> ids;
  ids.reserve(play.snakes);
  for (int i = 0; i < play.snakes; ++i) ids.push_back(std::to_string(i));
  return new_game(play.width, play.height, ids, seed, play.settings);
}

// `look` sees each position before it is played on, with whether a player sees how it ends.
template <class T, class F>
void play_game(State<T>& s, const SelfPlay& play, std::uint64_t seed,
               const std::vector<const Evaluation*>& players, F&& look) {
  std::vector<std::unique_ptr<Searcher>> searchers;
  searchers.reserve(players.size());
  for (const auto* e : players) searchers.push_back(std::make_unique<Searcher>(play.table_mb, *e));
  Rng rng(seed, 1);
  while (!s.game_over() && s.h.turn < play.max_turns) {
    Moves moves;
    moves.fill(kInvalidMove);
    bool decided = false;
    for (int i = 0; i < s.seats; ++i) {
      if (!s.alive(i)) continue;
      if (play.random_percent > 0 && rng.below(100) < play.random_percent) {
        moves[i] = static_cast<std::int8_t>(random_move(s, i, seed));
        continue;
      }
      const auto r = searchers[i]->search(s, i, play.limits);
      moves[i] = static_cast<std::int8_t>(r.best);
      decided |= std::abs(r.score[r.best]) > kDecidedScore;
    }
    look(s, decided);
    advance(s, moves, seed);
  }
}

}  // namespace snakekit
