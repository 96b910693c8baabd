#include "env.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "maps.h"
#include "rng.h"

namespace snakekit {

namespace {

constexpr int kTableMb = 8;
constexpr std::uint64_t kScenarioStream = 0x5ce7;

std::vector<std::string> seat_names(int n) {
  std::vector<std::string> names;
  names.reserve(n);
  for (int i = 0; i < n; ++i) names.emplace_back(1, static_cast<char>('a' + i));
  return names;
}

// The result of each seat that `before` says was alive: died alone, died with the last ones, or
// won.
template <class T>
Result result_of(const State<T>& s, std::uint32_t before, int seat) {
  const std::uint32_t died = before & ~static_cast<std::uint32_t>(s.h.alive);
  if ((died >> seat) & 1) {
    return s.h.alive == 0 && std::popcount(died) > 1 ? Result::kDraw : Result::kLoss;
  }
  return s.alive(seat) && s.game_over() ? Result::kWin : Result::kNone;
}

}  // namespace

VectorEnv::VectorEnv(const std::vector<Scenario>& mix, const EnvOptions& options)
    : options_(options), mix_(mix), pool_(std::max(1, options.threads)) {
  if (options.count < 1) throw StateError("count: expected at least 1");
  if (options.threads < 1 || options.threads > 256) throw StateError("threads: outside 1..256");
  if (options.encoder < 0 || options.encoder > 2) throw StateError("encoder: expected 0, 1 or 2");
  if (options.max_turns < 0) throw StateError("max_turns: negative");
  if (mix.empty()) throw StateError("scenarios: empty, expected at least one");
  bool any_large = false;
  for (std::size_t i = 0; i < mix.size(); ++i) {
    const auto& m = mix[i];
    const std::string field = "scenarios[" + std::to_string(i) + "]";
    if (!(m.weight > 0)) throw StateError(field + ".weight: expected a positive number");
    if (m.snakes < 1 || m.snakes > kMaxAlive) throw StateError(field + ".snakes: outside 1..8");
    total_weight_ += m.weight;
    seats_ = std::max(seats_, m.snakes);
    height_ = std::max(height_, m.height);
    width_ = std::max(width_, m.width);
  }
  planes_ = options.encoder == 0 ? 0 : (options.encoder == 1 ? kV1Planes : kV2Planes);
  rows_ = options.encoder == 1 ? kV1Side : height_;
  cols_ = options.encoder == 1 ? kV1Side : width_;
  for (int i = 0; i < static_cast<int>(mix.size()); ++i) {
    fresh(0, i).visit([&]<class T>(const State<T>&) { any_large |= std::is_same_v<T, Large>; });
  }
  const auto n = static_cast<std::size_t>(options.count);
  const std::size_t seats = n * seats_;
  is_large_.assign(n, 0);
  small_.resize(n);
  if (any_large) large_.resize(n);
  if (options.encoder == 1) traces_.resize(seats);
  auto& b = buffers;
  b.obs.assign(seats * observation_size(), 0);
  b.final_obs.assign(options.max_turns > 0 ? b.obs.size() : 0, 0);
  b.masks.assign(seats * kMoves, 0);
  for (auto* v : {&b.alive, &b.terminated, &b.truncated, &b.ate, &b.kills, &b.causes})
    v->assign(seats, 0);
  b.rewards.assign(seats, 0);
  b.results.assign(seats, 0);
  b.lengths.assign(seats, 0);
  b.healths.assign(seats, 0);
  for (auto* v : {&b.turns, &b.scenarios, &b.episodes}) v->assign(n, 0);
  reset();
}

template <class F>
void VectorEnv::at(int game, F&& f) {
  if (is_large_[game] != 0) {
    f(large_[game]);
  } else {
    f(small_[game]);
  }
}

template <class F>
void VectorEnv::at(int game, F&& f) const {
  if (is_large_[game] != 0) {
    f(large_[game]);
  } else {
    f(small_[game]);
  }
}

std::uint64_t VectorEnv::episode_seed(int game) const {
  const auto episode = static_cast<std::uint64_t>(buffers.episodes[game]);
  return mix64(options_.seed ^ mix64(static_cast<std::uint64_t>(game) << 32 ^ episode));
}

Board VectorEnv::fresh(int game, int scenario) const {
  const auto& m = mix_[scenario];
  const std::uint64_t seed = buffers.episodes.empty() ? options_.seed : episode_seed(game);
  return new_game(m.width, m.height, seat_names(m.snakes), seed, m.settings);
}

void VectorEnv::start(int game) {
  Rng rng(episode_seed(game), kScenarioStream);
  double at = static_cast<double>(rng.next() >> 11) * 0x1p-53 * total_weight_;
  int chosen = 0;
  while (chosen + 1 < static_cast<int>(mix_.size()) && at >= mix_[chosen].weight) {
    at -= mix_[chosen++].weight;
  }
  buffers.scenarios[game] = chosen;
  fresh(game, chosen).visit([&]<class T>(const State<T>& s) {
    is_large_[game] = std::is_same_v<T, Large>;
    if constexpr (std::is_same_v<T, Large>) {
      large_[game] = s;
    } else {
      small_[game] = s;
    }
  });
}

void VectorEnv::reset() {
  pool_.run(options_.count, [&](int first, int last, int) {
    for (int g = first; g < last; ++g) {
      start(g);
      at(g, [&](const auto& s) { observe(s, g); });
    }
  });
}

void VectorEnv::replay(const std::int32_t* episodes, const std::int32_t* turns,
                       const std::int8_t* moves, int stride) {
  pool_.run(options_.count, [&](int first, int last, int) {
    for (int g = first; g < last; ++g) {
      buffers.episodes[g] = episodes[g];
      start(g);
      at(g, [&](auto& s) {
        Moves m;
        for (int turn = 0; turn < turns[g]; ++turn) {
          m.fill(kInvalidMove);
          const auto* played = moves + (std::ptrdiff_t{g} * stride + turn) * seats_;
          for (int i = 0; i < s.seats; ++i) m[i] = played[i];
          advance(s, m, episode_seed(g));
        }
        observe(s, g);
      });
    }
  });
}

template <class T>
void VectorEnv::observe_final(const State<T>& s, int game) {
  const auto size = observation_size();
  for (int i = 0; i < s.seats; ++i) {
    if (!s.alive(i)) continue;
    std::uint8_t* out = buffers.final_obs.data() + index(game, i) * size;
    if (options_.encoder == 1) encode_v1(s, i, out);
    if (options_.encoder == 2) encode_v2(s, Arrivals<T>(s), i, {out, rows_, cols_});
  }
}

template <class T>
void VectorEnv::observe(const State<T>& s, int game) {
  if (options_.encoder == 2) {
    const Arrivals<T> arrivals(s);
    observe(s, game, &arrivals);
  } else {
    observe<T>(s, game, nullptr);
  }
}

template <class T>
void VectorEnv::observe(const State<T>& s, int game, const Arrivals<T>* arrivals) {
  auto& b = buffers;
  const auto size = observation_size();
  b.turns[game] = s.h.turn;
  for (int i = 0; i < seats_; ++i) {
    const auto at = index(game, i);
    std::uint8_t* out = b.obs.data() + at * size;
    const bool alive = i < s.seats && s.alive(i);
    if (!alive) {
      if (b.alive[at] != 0) {
        if (size != 0) std::memset(out, 0, size);  // without an encoder there is no buffer
        std::memset(&b.masks[at * kMoves], 0, kMoves);
        if (!traces_.empty()) traces_[at].count = -1;
      }
      b.alive[at] = 0;
      continue;
    }
    b.alive[at] = 1;
    b.lengths[at] = s.h.snake[i].length;
    b.healths[at] = s.h.snake[i].health;
    const int safe = safe_mask(s, i);
    for (int m = 0; m < kMoves; ++m)
      b.masks[at * kMoves + m] = static_cast<std::uint8_t>(safe == 0 || ((safe >> m) & 1) != 0);
    if (options_.encoder == 1) encode_v1(s, i, out, traces_[at]);
    if (arrivals != nullptr) encode_v2(s, *arrivals, i, {out, rows_, cols_});
  }
}

template <class T>
void VectorEnv::play(State<T>& s, int game, const std::int8_t* moves) {
  auto& b = buffers;
  const std::uint32_t before = s.h.alive;
  Moves m;
  m.fill(kInvalidMove);
  std::array<std::int16_t, T::kSnakes> length;
  for (int i = 0; i < s.seats; ++i) {
    m[i] = moves[i];
    length[i] = s.h.snake[i].length;
  }
  advance(s, m, episode_seed(game));
  const auto first = index(game, 0);
  const bool cut = !s.game_over() && options_.max_turns > 0 && s.h.turn >= options_.max_turns;
  for (auto* v : {&b.terminated, &b.truncated, &b.ate, &b.kills, &b.causes})
    std::fill_n(v->begin() + static_cast<std::ptrdiff_t>(first), seats_, std::uint8_t{0});
  for (int i = 0; i < seats_; ++i) {
    const auto k = first + i;
    b.rewards[k] = 0;
    b.results[k] = 0;
    if (i >= s.seats || ((before >> i) & 1) == 0) continue;
    const auto& snake = s.h.snake[i];
    const Result r = result_of(s, before, i);
    b.results[k] = static_cast<std::int8_t>(r);
    b.terminated[k] = static_cast<std::uint8_t>(r != Result::kNone);
    b.truncated[k] = static_cast<std::uint8_t>(cut && s.alive(i));
    if (r != Result::kNone) b.rewards[k] = r == Result::kWin ? 1.0F : -1.0F;
    b.ate[k] = static_cast<std::uint8_t>(!s.rules.constrictor && snake.length > length[i]);
    b.causes[k] = static_cast<std::uint8_t>(snake.cause);
    if (snake.cause == Cause::kHead) ++b.kills[first + snake.by];
  }
  if (cut && options_.encoder != 0) observe_final(s, game);
  if (!cut && !s.game_over()) {
    observe(s, game);
    return;
  }
  ++b.episodes[game];
  start(game);
  at(game, [&](const auto& next) { observe(next, game); });
}

void VectorEnv::step(const std::int8_t* moves) {
  pool_.run(options_.count, [&](int first, int last, int) {
    for (int g = first; g < last; ++g) at(g, [&](auto& s) { play(s, g, moves + index(g, 0)); });
  });
}

Board VectorEnv::board(int game) const {
  Board b = fresh(game, buffers.scenarios[game]);
  at(game, [&]<class T>(const State<T>& s) {
    b.visit([&]<class U>(State<U>& out) {
      if constexpr (std::is_same_v<T, U>) out = s;
    });
  });
  return b;
}

void VectorEnv::encode(int version, const Row* rows, int n, std::uint8_t* out) const {
  const auto size = version == 1 ? std::ptrdiff_t{kV1Planes} * kV1Side * kV1Side
                                 : std::ptrdiff_t{kV2Planes} * height_ * width_;
  for (int i = 0; i < n; ++i) {
    at(rows[i].game, [&]<class T>(const State<T>& s) {
      if (version == 1) {
        encode_v1(s, rows[i].seat, out + i * size);
      } else {
        encode_v2(s, Arrivals<T>(s), rows[i].seat, {out + i * size, height_, width_});
      }
    });
  }
}

void VectorEnv::search(const Row* rows, int n, int max_depth, std::int64_t budget_us, float* out) {
  while (static_cast<int>(searchers_.size()) < pool_.threads())
    searchers_.push_back(std::make_unique<Searcher>(kTableMb));
  Limits limits;
  limits.max_depth = max_depth;
  limits.budget_us = budget_us;
  limits.exact_scores = true;
  limits.early_stop = false;
  limits.mixing = Mixing::kOff;
  limits.max_n = false;
  // Which table a row meets depends on its place alone, so fixed depth gives the same scores.
  pool_.run(n, [&](int first, int last, int thread) {
    auto& searcher = *searchers_[thread];
    for (int i = first; i < last; ++i) {
      at(rows[i].game, [&](const auto& s) {
        const auto r = searcher.search(s, rows[i].seat, limits);
        for (int m = 0; m < kMoves; ++m) {
          out[i * kMoves + m] = r.searched[m] ? static_cast<float>(r.score[m])
                                              : -std::numeric_limits<float>::infinity();
        }
      });
    }
  });
}

std::size_t VectorEnv::bytes_per_game() const {
  return (large_.empty() ? 0 : sizeof(State<Large>)) + sizeof(State<Small>) +
         (traces_.empty() ? 0 : sizeof(V1Trace) * seats_);
}

}  // namespace snakekit
