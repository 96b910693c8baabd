#include "stage.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "../rules.h"

namespace snakekit {

template <class T>
StageGames::Game StageGames::begin(const State<T>& s, const float* prior) const {
  Game game;
  game.roster = Roster::of(s);
  game.first_line = leaves_.lines();
  game.shape.seats = game.roster.count;
  for (int slot = 0; slot < game.roster.count; ++slot) {
    const int seat = game.roster.seat[slot];
    const int mask = candidate_mask(s, seat);
    auto& moves = game.moves[slot];
    int n = 0;
    for (int m = 0; m < kMoves; ++m) {
      if ((mask >> m) & 1) moves[n++] = static_cast<std::int8_t>(m);
    }
    game.shape.actions[slot] = n;
    if (prior == nullptr) continue;
    const float* p = prior + static_cast<std::ptrdiff_t>(slot) * kMoves;
    std::stable_sort(moves.begin(), moves.begin() + n, [&](int a, int b) { return p[a] > p[b]; });
  }
  game.cut = game.shape.joints() > limit_;
  while (game.cut && game.shape.joints() > kept_) {
    --*std::max_element(game.shape.actions.begin(), game.shape.actions.end());
  }
  return game;
}

template <class T>
void StageGames::enumerate(const State<T>& s, const float* prior) {
  const Game game = begin(s, prior);
  const int n = game.roster.count;
  std::array<int, kMaxSlots> at{};
  const std::int64_t joints = game.shape.joints();
  for (std::int64_t joint = 0; joint < joints; ++joint) {
    Moves moves;
    moves.fill(kInvalidMove);
    for (int slot = 0; slot < n; ++slot) moves[game.roster.seat[slot]] = game.moves[slot][at[slot]];
    State<T> after = s;
    step(after, moves);
    leaves_.add(game.roster, after);
    for (int slot = n - 1; slot >= 0; --slot) {
      if (++at[slot] < game.shape.actions[slot]) break;
      at[slot] = 0;
    }
  }
  games_.push_back(game);
}

void StageGames::load(const std::vector<const Board*>& boards, const float* priors) {
  games_.clear();
  small_.clear();
  large_.clear();
  if (boards.empty()) throw StateError("boards: empty, expected at least one");
  leaves_.reset(*boards[0]);
  const int slots = leaves_.slots();
  for (std::size_t i = 0; i < boards.size(); ++i) {
    const std::string name = "boards[" + std::to_string(i) + "]";
    boards[i]->visit([&]<class T>(const State<T>& s) {
      check_players(s, slots, name);
      constexpr bool large = std::is_same_v<T, Large>;
      if (large != leaves_.is_large() || s.geo->width != leaves_.width() ||
          s.geo->height != leaves_.height())
        throw StateError(name + ": another size than boards[0]");
      if constexpr (large) {
        large_.push_back(s);
      } else {
        small_.push_back(s);
      }
      enumerate(s, priors == nullptr ? nullptr : priors + i * slots * kMoves);
    });
  }
}

void StageGames::load_leaves(const StageGames& shallower) {
  games_.clear();
  leaves_.reset(shallower.leaves_);
  small_ = shallower.leaves_.open<Small>();
  large_ = shallower.leaves_.open<Large>();
  for (const auto& s : small_) enumerate(s, nullptr);
  for (const auto& s : large_) enumerate(s, nullptr);
}

void StageGames::encode_roots(std::uint8_t* out) const {
  const int slots = leaves_.slots();
  const auto size = static_cast<std::size_t>(v3_planes(slots)) * leaves_.height() * leaves_.width();
  const auto all = [&](const auto& states) {
    for (const auto& s : states) {
      encode_v3(s, slots, {out, leaves_.height(), leaves_.width()});
      out += size;
    }
  };
  all(small_);
  all(large_);
}

void StageGames::seats(std::int8_t* out) const {
  for (const Game& game : games_) {
    for (int slot = 0; slot < leaves_.slots(); ++slot)
      *out++ = static_cast<std::int8_t>(slot < game.roster.count ? game.roster.seat[slot] : -1);
  }
}

void StageGames::cut(std::uint8_t* out) const {
  for (const Game& game : games_) *out++ = game.cut ? 1 : 0;
}

void StageGames::candidates(std::uint8_t* out) const {
  const auto size = static_cast<std::ptrdiff_t>(leaves_.slots()) * kMoves;
  for (const Game& game : games_) {
    std::fill_n(out, size, std::uint8_t{0});
    for (int slot = 0; slot < game.roster.count; ++slot) {
      for (int a = 0; a < game.shape.actions[slot]; ++a)
        out[slot * kMoves + game.moves[slot][a]] = 1;
    }
    out += size;
  }
}

void StageGames::write(const Game& game, const float* policy, std::size_t index,
                       const StageResults& out) {
  const int slots = leaves_.slots();
  float* expected = out.outcome + index * (slots + 1);
  std::fill_n(expected, slots + 1, 0.0F);
  const int n = game.roster.count;
  std::array<int, kMaxSlots> at{};
  const std::int64_t joints = game.shape.joints();
  for (std::int64_t joint = 0; joint < joints; ++joint) {
    float chance = 1;
    const float* p = policy;
    for (int slot = 0; slot < n; ++slot) {
      chance *= p[at[slot]];
      p += game.shape.actions[slot];
    }
    const float* outcome = leaves_.outcome(game.first_line + static_cast<int>(joint));
    for (int k = 0; k <= slots; ++k) expected[k] += chance * outcome[k];
    for (int slot = n - 1; slot >= 0; --slot) {
      if (++at[slot] < game.shape.actions[slot]) break;
      at[slot] = 0;
    }
  }
  float* moves = out.policy + index * slots * kMoves;
  std::fill_n(moves, slots * kMoves, 0.0F);
  for (int slot = 0; slot < n; ++slot) {
    for (int a = 0; a < game.shape.actions[slot]; ++a)
      moves[slot * kMoves + game.moves[slot][a]] = *policy++;
  }
}

std::array<const float*, kMaxSlots> StageGames::keep(const Game& game, const float* fixed) {
  std::array<const float*, kMaxSlots> kept{};
  if (fixed == nullptr) return kept;
  fixed_.resize(game.shape.policy_size());
  float* p = fixed_.data();
  for (int slot = 0; slot < game.roster.count; ++slot) {
    const int n = game.shape.actions[slot];
    const float* given = fixed + static_cast<std::ptrdiff_t>(slot) * kMoves;
    if (!std::isnan(given[0])) {
      float total = 0;
      for (int a = 0; a < n; ++a) total += given[game.moves[slot][a]];
      for (int a = 0; a < n; ++a)
        p[a] = total > 0 ? given[game.moves[slot][a]] / total : 1.0F / static_cast<float>(n);
      kept[slot] = p;
    }
    p += n;
  }
  return kept;
}

void StageGames::solve(const float* outcomes, bool logits, float draw_worth,
                       const RegretOptions& options, const StageResults& out, const float* fixed) {
  leaves_.read(outcomes, logits, draw_worth);
  const int slots = leaves_.slots();
  std::fill_n(out.value, games_.size() * slots, 0.0F);
  for (std::size_t i = 0; i < games_.size(); ++i) {
    const Game& game = games_[i];
    const int n = game.roster.count;
    const auto joints = static_cast<int>(game.shape.joints());
    utility_.resize(static_cast<std::size_t>(joints) * n);
    for (int joint = 0; joint < joints; ++joint)
      std::copy_n(leaves_.utility(game.first_line + joint), n, &utility_[joint * n]);
    policy_.resize(game.shape.policy_size());
    RegretOptions each = options;
    each.seed = options.seed + i;
    if (each.method == Method::kExact && n != 2) each.method = Method::kAuto;
    const auto kept = keep(game, fixed == nullptr ? nullptr : fixed + i * slots * kMoves);
    solver_.solve(game.shape, utility_.data(), each, policy_.data(), out.value + i * slots,
                  out.gap + i, kept.data());
    write(game, policy_.data(), i, out);
  }
}

}  // namespace snakekit
