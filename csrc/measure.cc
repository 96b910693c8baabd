#include "measure.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "encode.h"
#include "maps.h"
#include "nash/encode_all.h"
#include "players.h"

namespace snakekit {

namespace {

constexpr int kGames = 64;
constexpr int kMaxTurns = 300;

template <class T>
struct Recorded {
  State<T> start;
  std::vector<Moves> moves;
};

template <class T>
Recorded<T> record(const State<T>& start, std::uint64_t seed) {
  Recorded<T> r{start, {}};
  State<T> s = start;
  while (!s.game_over() && s.h.turn < kMaxTurns) {
    Moves m;
    m.fill(kInvalidMove);
    for (int i = 0; i < s.seats; ++i) {
      if (s.alive(i)) m[i] = static_cast<std::int8_t>(random_move(s, i, seed));
    }
    r.moves.push_back(m);
    step(s, m);
  }
  return r;
}

template <class T>
Measured replay(const std::vector<Recorded<T>>& games, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto s = std::make_unique<State<T>>();
  const auto begin = Clock::now();
  Measured out;
  do {
    for (const auto& game : games) {
      *s = game.start;
      for (const auto& m : game.moves) step(*s, m);
      out.count += s->h.turn - game.start.h.turn;
    }
    out.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  } while (out.seconds < seconds);
  return out;
}

}  // namespace

Measured measure_turns(int width, int height, int snakes, std::uint64_t seed,
                       const Settings& settings, double seconds) {
  std::vector<std::string> ids;
  ids.reserve(snakes);
  for (int i = 0; i < snakes; ++i) ids.push_back(std::to_string(i));
  const Board first = new_game(width, height, ids, seed, settings);
  return first.visit([&]<class T>(const State<T>&) {
    std::vector<Recorded<T>> games;
    for (int g = 0; g < kGames; ++g) {
      const Board b = new_game(width, height, ids, seed + g, settings);
      b.visit([&]<class U>(const State<U>& s) {
        if constexpr (std::is_same_v<T, U>) games.push_back(record(s, seed + g));
      });
    }
    return replay(games, seconds);
  });
}

double measure_encoder(const std::vector<const Board*>& boards, int version, double seconds) {
  using Clock = std::chrono::steady_clock;
  // No other version has more planes.
  std::vector<std::uint8_t> out(static_cast<std::size_t>(v3_planes(kMaxSlots)) * 25 * 25);
  const auto begin = Clock::now();
  std::int64_t count = 0;
  double spent = 0;
  do {
    for (const Board* board : boards) {
      board->visit([&]<class T>(const State<T>& s) {
        if (version == 1) {
          for (int i = 0; i < s.seats; ++i) {
            if (s.alive(i)) encode_v1(s, i, out.data());
          }
          return;
        }
        if (version == 3) {
          encode_v3(s, std::min(s.living(), kMaxSlots), {out.data(), s.geo->height, s.geo->width});
          return;
        }
        const Arrivals<T> arrivals(s);
        for (int i = 0; i < s.seats; ++i) {
          if (s.alive(i)) encode_v2(s, arrivals, i, {out.data(), s.geo->height, s.geo->width});
        }
      });
    }
    count += static_cast<std::int64_t>(boards.size());
    spent = std::chrono::duration<double>(Clock::now() - begin).count();
  } while (spent < seconds);
  return spent / static_cast<double>(count);
}

}  // namespace snakekit
