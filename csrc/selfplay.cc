#include "selfplay.h"

#include <bit>

#include "pool.h"
#include "selfplay_game.h"

namespace snakekit {

namespace {

// Bit i: seat i plays for `b`.
std::vector<std::uint32_t> seatings(int snakes) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t set = 0; set < 1U << snakes; ++set) {
    if (2 * std::popcount(set) == snakes) all.push_back(set);
  }
  return all;
}

float points_of_a(std::uint32_t alive, std::uint32_t seats_of_b) {
  if (std::popcount(alive) != 1) return 0.5F;
  return (alive & seats_of_b) == 0 ? 1.0F : 0.0F;
}

}  // namespace

int line_ups(int snakes) { return static_cast<int>(seatings(snakes).size()); }

std::vector<float> self_play(const Evaluation& a, const Evaluation& b, const SelfPlay& play,
                             std::int64_t first, int starts, int threads) {
  const auto kinds = seatings(play.snakes);
  const int per_start = static_cast<int>(kinds.size());
  std::vector<float> points(static_cast<std::size_t>(starts) * kinds.size());
  Pool(threads).run(static_cast<int>(points.size()), [&](int from, int to, int) {
    for (int g = from; g < to; ++g) {
      const std::uint32_t of_b = kinds[g % per_start];
      std::vector<const Evaluation*> players;
      players.reserve(play.snakes);
      for (int i = 0; i < play.snakes; ++i) players.push_back(((of_b >> i) & 1) != 0 ? &b : &a);
      const auto seed = mix64(play.seed ^ mix64(static_cast<std::uint64_t>(first) + g / per_start));
      auto board = start_of(play, seed);
      board.visit([&](auto& s) {
        play_game(s, play, seed, players, [](const auto&, bool) {});
        points[g] = points_of_a(s.h.alive, of_b);
      });
    }
  });
  return points;
}

Positions sample_positions(const Evaluation& evaluation, const SelfPlay& play, std::int64_t first,
                           int games, int every, int threads) {
  std::vector<Positions> parts(games);
  Pool(threads).run(games, [&](int from, int to, int) {
    for (int g = from; g < to; ++g) {
      auto& part = parts[g];
      std::vector<int> seats;
      const auto seed = mix64(play.seed ^ mix64(static_cast<std::uint64_t>(first) + g));
      auto board = start_of(play, seed);
      board.visit([&](auto& s) {
        const std::vector<const Evaluation*> players(play.snakes, &evaluation);
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
