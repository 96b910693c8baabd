#include "selfplay.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string>

#include "maps.h"
#include "players.h"
#include "pool.h"
#include "rng.h"

namespace snakekit {

namespace {

constexpr int kDecided = kWinScore - kProofMargin;

// Bit i: seat i plays for `b`.
std::vector<std::uint32_t> seatings(int snakes) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t set = 0; set < 1U << snakes; ++set) {
    if (2 * std::popcount(set) == snakes) all.push_back(set);
  }
  return all;
}

Board start_of(const SelfPlay& play, std::uint64_t seed) {
  std::vector<std::string> ids;
  ids.reserve(play.snakes);
  for (int i = 0; i < play.snakes; ++i) ids.push_back(std::to_string(i));
  return new_game(play.width, play.height, ids, seed, play.settings);
}

// One game; `look` sees each position before it is played on, with whether it seems decided.
template <class T, class F>
void play_game(State<T>& s, const SelfPlay& play, std::uint64_t seed,
               const std::vector<const EvalWeights*>& weights, F&& look) {
  std::vector<std::unique_ptr<Searcher>> searchers;
  searchers.reserve(weights.size());
  for (const auto* w : weights) searchers.push_back(std::make_unique<Searcher>(play.table_mb, *w));
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
      decided |= std::abs(r.score[r.best]) > kDecided;
    }
    look(s, decided);
    advance(s, moves, seed);
  }
}

float points_of_a(std::uint32_t alive, std::uint32_t seats_of_b) {
  if (std::popcount(alive) != 1) return 0.5F;
  return (alive & seats_of_b) == 0 ? 1.0F : 0.0F;
}

}  // namespace

int line_ups(int snakes) { return static_cast<int>(seatings(snakes).size()); }

std::vector<float> self_play(const EvalWeights& a, const EvalWeights& b, const SelfPlay& play,
                             std::int64_t first, int starts, int threads) {
  const auto kinds = seatings(play.snakes);
  const int per_start = static_cast<int>(kinds.size());
  std::vector<float> points(static_cast<std::size_t>(starts) * kinds.size());
  Pool(threads).run(static_cast<int>(points.size()), [&](int from, int to, int) {
    for (int g = from; g < to; ++g) {
      const std::uint32_t of_b = kinds[g % per_start];
      std::vector<const EvalWeights*> weights;
      weights.reserve(play.snakes);
      for (int i = 0; i < play.snakes; ++i) weights.push_back(((of_b >> i) & 1) != 0 ? &b : &a);
      const auto seed = mix64(play.seed ^ mix64(static_cast<std::uint64_t>(first) + g / per_start));
      auto board = start_of(play, seed);
      board.visit([&](auto& s) {
        play_game(s, play, seed, weights, [](const auto&, bool) {});
        points[g] = points_of_a(s.h.alive, of_b);
      });
    }
  });
  return points;
}

Positions sample_positions(const EvalWeights& weights, const SelfPlay& play, std::int64_t first,
                           int games, int every, int threads) {
  std::vector<Positions> parts(games);
  Pool(threads).run(games, [&](int from, int to, int) {
    for (int g = from; g < to; ++g) {
      auto& part = parts[g];
      std::vector<int> seats;
      const auto seed = mix64(play.seed ^ mix64(static_cast<std::uint64_t>(first) + g));
      auto board = start_of(play, seed);
      board.visit([&](auto& s) {
        const std::vector<const EvalWeights*> players(play.snakes, &weights);
        play_game(s, play, seed, players, [&](const auto& at, bool decided) {
          if (decided || at.h.turn % every != 0) return;
          for (int i = 0; i < at.seats; ++i) {
            if (!at.alive(i)) continue;
            part.terms.push_back(evaluation_terms(at, i));
            part.living.push_back(at.living());
            part.game.push_back(first + g);
            seats.push_back(i);
          }
        });
        const bool won = s.living() == 1;
        for (const int i : seats)
          part.result.push_back(won ? (s.alive(i) ? 1.0F : 0.0F) : (play.snakes == 2 ? 0.5F : 0));
      });
    }
  });
  Positions all;
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const auto& part : parts) {
    append(all.terms, part.terms);
    append(all.living, part.living);
    append(all.result, part.result);
    append(all.game, part.game);
  }
  return all;
}

}  // namespace snakekit
