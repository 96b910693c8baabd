#include "games.h"

#include <limits>
#include <thread>

#include "maps.h"
#include "rng.h"

namespace snakekit {

namespace {

constexpr int kTableMb = 8;

std::vector<std::string> seat_names(int n) {
  std::vector<std::string> names;
  names.reserve(n);
  for (int i = 0; i < n; ++i) names.push_back(std::string(1, static_cast<char>('a' + i)));
  return names;
}

template <class T>
void results(const State<T>& s, std::uint32_t before, std::int8_t* out) {
  const std::uint32_t died = before & ~static_cast<std::uint32_t>(s.h.alive);
  const bool all_dead = s.h.alive == 0;
  const bool shared = all_dead && std::popcount(died) > 1;
  for (int i = 0; i < s.seats; ++i) {
    auto r = Result::kNone;
    if ((died >> i) & 1) r = shared ? Result::kDraw : Result::kLoss;
    if (s.alive(i) && s.game_over()) r = Result::kWin;
    out[i] = static_cast<std::int8_t>(r);
  }
}

}  // namespace

Games::Games(int count, int width, int height, int snakes, std::uint64_t seed,
             const Settings& settings)
    : count_(count),
      width_(width),
      height_(height),
      seats_(snakes),
      seed_(seed),
      settings_(settings) {
  if (count < 1) throw StateError("count: " + std::to_string(count) + ", expected at least 1");
  if (snakes < 1 || snakes > kMaxAlive)
    throw StateError("snakes: " + std::to_string(snakes) + " is outside 1..8");
  episode_.assign(count, 0);
  fresh(0).visit([&]<class T>(const State<T>&) { states_.emplace<std::vector<State<T>>>(count); });
  std::visit(
      [&]<class T>(std::vector<State<T>>& states) {
        for (int g = 0; g < count; ++g) {
          fresh(g).visit([&]<class U>(const State<U>& s) {
            if constexpr (std::is_same_v<T, U>) states[g] = s;
          });
        }
      },
      states_);
}

Board Games::fresh(int game) const {
  const auto seed = mix64(seed_ ^ mix64(static_cast<std::uint64_t>(game) << 32 | episode_[game]));
  return new_game(width_, height_, seat_names(seats_), seed, settings_);
}

Board Games::board(int game) const {
  Board b = fresh(game);
  std::visit(
      [&]<class T>(const std::vector<State<T>>& states) {
        b.visit([&]<class U>(State<U>& s) {
          if constexpr (std::is_same_v<T, U>) s = states[game];
        });
      },
      states_);
  return b;
}

void Games::alive(bool* out) const {
  std::visit(
      [&](const auto& states) {
        for (const auto& s : states)
          for (int i = 0; i < seats_; ++i) *out++ = s.alive(i);
      },
      states_);
}

void Games::safe_masks(std::uint8_t* out) const {
  std::visit(
      [&](const auto& states) {
        for (const auto& s : states)
          for (int i = 0; i < seats_; ++i)
            *out++ = s.alive(i) ? static_cast<std::uint8_t>(safe_mask(s, i)) : 0;
      },
      states_);
}

void Games::encode(int version, const Row* rows, int n, std::uint8_t* out) const {
  std::visit(
      [&]<class T>(const std::vector<State<T>>& states) {
        int known = -1;
        std::unique_ptr<Arrivals<T>> arrivals;
        for (int i = 0; i < n; ++i) {
          const auto& s = states[rows[i].game];
          if (version == 1) {
            encode_v1(s, rows[i].seat, out);
            out += static_cast<std::ptrdiff_t>(kV1Planes) * kV1Side * kV1Side;
            continue;
          }
          if (rows[i].game != known) {
            arrivals = std::make_unique<Arrivals<T>>(s);
            known = rows[i].game;
          }
          encode_v2(s, *arrivals, rows[i].seat, {out, height_, width_});
          out += static_cast<std::ptrdiff_t>(kV2Planes) * height_ * width_;
        }
      },
      states_);
}

void Games::search(const Row* rows, int n, int max_depth, std::int64_t budget_us, int threads,
                   float* out) {
  while (static_cast<int>(searchers_.size()) < threads)
    searchers_.push_back(std::make_unique<Searcher>(kTableMb));
  Limits limits;
  limits.max_depth = max_depth;
  limits.budget_us = budget_us;
  const auto work = [&](int thread) {
    std::visit(
        [&](const auto& states) {
          // A fixed share a thread keeps fixed-depth results the same for the same thread count.
          for (int i = thread; i < n; i += threads) {
            const auto r = searchers_[thread]->search(states[rows[i].game], rows[i].seat, limits);
            for (int m = 0; m < kMoves; ++m) {
              out[i * kMoves + m] = r.searched[m] ? static_cast<float>(r.score[m])
                                                  : -std::numeric_limits<float>::infinity();
            }
          }
        },
        states_);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (auto& t : others) t.join();
}

void Games::step(const std::int8_t* moves, std::int8_t* out) {
  std::visit(
      [&]<class T>(std::vector<State<T>>& states) {
        Moves m;
        m.fill(kInvalidMove);
        for (int g = 0; g < count_; ++g) {
          auto& s = states[g];
          const std::uint32_t before = s.h.alive;
          for (int i = 0; i < seats_; ++i) m[i] = moves[g * seats_ + i];
          advance(s, m, mix64(seed_ + 0x9e37ULL * static_cast<std::uint64_t>(g)) ^ episode_[g]);
          results(s, before, out + static_cast<std::ptrdiff_t>(g) * seats_);
          if (s.game_over()) {
            ++episode_[g];
            fresh(g).visit([&]<class U>(const State<U>& f) {
              if constexpr (std::is_same_v<T, U>) s = f;
            });
          }
        }
      },
      states_);
}

}  // namespace snakekit
