// What the learned value of a duel looks at: small numbers of both snakes, of the two together and
// of the board, each of which picks a row of a table.
//
// Everything looks the same after a turn or reflection of the board. The numbers are part of the
// format of networks: a change to them is a new kFeatureVersion.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>

#include "../rules.h"
#include "../search/flood.h"

namespace snakekit {

inline constexpr int kFeatureVersion = 1;

// Of one snake. Numbers beyond the last row of a feature count as that row.
struct OwnFeature {
  enum : int {
    kPlace,     // how far its head is from the two edges, the nearer one first
    kRoom,      // cells it reaches first
    kSoon,      // the same within kHorizons turns
    kSooner,    //
    kSoonest,   //
    kInner,     // cells of its room off the edge
    kLength,    //
    kHealth,    //
    kFood,      // turns to the first food it is first at, and how hungry it is
    kStarving,  // no food in time, and how hungry it is
    kFoods,     // pieces of food it is first at
    kShort,     // closed in, and the cells that it lacks for its length
    kSpare,     // room less length
    kMoves,     // moves that are not certain death
    kTail,      // whether its room holds its tail, and whether it touches it
    kCount
  };
};
inline constexpr std::array<int, OwnFeature::kCount> kOwnRows{36, 61, 34, 24, 14, 22, 48, 26,
                                                              63, 12, 8,  20, 40, 4,  4};

// Of the two.
struct PairFeature {
  enum : int {
    kLead,      // our length less its
    kHeads,     // how the heads lie to each other, and who is longer
    kRoom,      // our room less its
    kSoon,      // the same within kHorizons turns
    kSooner,    //
    kSoonest,   //
    kFrontier,  // cells of its room next to ours
    kCount
  };
};
inline constexpr std::array<int, PairFeature::kCount> kPairRows{21, 198, 60, 31, 31, 31, 24};

// Of the whole board.
struct BoardFeature {
  enum : int {
    kOpen,    // cells that nobody is first at
    kBodies,  // segments of the living
    kFood,    // pieces of food
    kCount
  };
};
inline constexpr std::array<int, BoardFeature::kCount> kBoardRows{31, 31, 8};

template <std::size_t N>
constexpr int total(const std::array<int, N>& rows) {
  int sum = 0;
  for (const int n : rows) sum += n;
  return sum;
}

// Rows in all: ours, theirs, the pair's and the board's, in this order.
inline constexpr int kFeatureRows = 2 * total(kOwnRows) + total(kPairRows) + total(kBoardRows);
inline constexpr std::size_t kFeatures = 2 * kOwnRows.size() + kPairRows.size() + kBoardRows.size();

// Rows picked by a position.
using Features = std::array<std::uint16_t, kFeatures>;

class Picker {
 public:
  explicit Picker(Features& out) : at_(out.begin()) {}

  template <std::size_t N>
  void pick(const std::array<int, N>& rows, const std::array<int, N>& value) {
    for (std::size_t k = 0; k < N; ++k) {
      *at_++ = static_cast<std::uint16_t>(first_ + std::clamp(value[k], 0, rows[k] - 1));
      first_ += rows[k];
    }
  }

 private:
  Features::iterator at_;
  int first_ = 0;
};

template <class T>
inline std::array<int, OwnFeature::kCount> own_features(const State<T>& s, int i,
                                                        const Prospect<T>& p) {
  const auto& snake = s.h.snake[i];
  const auto [x, y] = s.geo->point(s.head(i));
  const int to_side = std::min({x, s.geo->width - 1 - x, 5});
  const int to_end = std::min({y, s.geo->height - 1 - y, 5});
  const int hunger = snake.health < 30 ? 0 : (snake.health < 60 ? 1 : 2);
  const bool starves = p.food_turn == 0 || p.food_turn > snake.health;
  const int tail = s.tail(i);
  std::array<int, OwnFeature::kCount> v{};
  v[OwnFeature::kPlace] = 6 * std::min(to_side, to_end) + std::max(to_side, to_end);
  v[OwnFeature::kRoom] = p.room / 2;
  v[OwnFeature::kSoon] = p.within[2].count() / 3;
  v[OwnFeature::kSooner] = p.within[1].count() / 2;
  v[OwnFeature::kSoonest] = p.within[0].count();
  v[OwnFeature::kInner] = (p.reach & s.geo->inner).count() / 4;
  v[OwnFeature::kLength] = snake.length;
  v[OwnFeature::kHealth] = snake.health / 4;
  v[OwnFeature::kFood] = 3 * std::min(p.food_turn, 20) + hunger;
  v[OwnFeature::kStarving] = starves ? 1 + std::max(0, 40 - snake.health) / 4 : 0;
  v[OwnFeature::kFoods] = (p.reach & s.h.food).count();
  v[OwnFeature::kShort] = p.closed ? 1 + std::max(0, snake.length - p.room + 2) / 2 : 0;
  v[OwnFeature::kSpare] = (std::clamp(p.room - snake.length, -20, 59) + 20) / 2;
  v[OwnFeature::kMoves] = std::popcount(static_cast<unsigned>(safe_mask(s, i)));
  v[OwnFeature::kTail] = (p.beside.test(tail) ? 2 : 0) + (p.reach.test(tail) ? 1 : 0);
  return v;
}

template <class T>
inline std::array<int, PairFeature::kCount> pair_features(const State<T>& s, int us, int them,
                                                          const Flood<T>& flood) {
  const int lead = s.h.snake[us].length - s.h.snake[them].length;
  const auto [ax, ay] = s.geo->point(s.head(us));
  const auto [bx, by] = s.geo->point(s.head(them));
  const int dx = std::min(std::abs(ax - bx), 10);
  const int dy = std::min(std::abs(ay - by), 10);
  const int far = std::max(dx, dy);
  const auto& a = flood.of[us];
  const auto& b = flood.of[them];
  std::array<int, PairFeature::kCount> v{};
  v[PairFeature::kLead] = lead + 10;
  v[PairFeature::kHeads] =
      3 * (far * (far + 1) / 2 + std::min(dx, dy)) + (lead > 0 ? 2 : (lead == 0 ? 1 : 0));
  v[PairFeature::kRoom] = (std::clamp(a.room - b.room, -90, 89) + 90) / 3;
  for (int k = 0; k < 3; ++k)
    v[PairFeature::kSoonest - k] = a.within[k].count() - b.within[k].count() + 15;
  v[PairFeature::kFrontier] = (a.beside & b.reach).count();
  return v;
}

// For `us`, who lives with one other.
template <class T>
inline Features list_features(const State<T>& s, int us, const Flood<T>& flood) {
  const int them = std::countr_zero(static_cast<unsigned>(s.h.alive & ~(1U << us)));
  const int taken = flood.of[us].room + flood.of[them].room;
  const int segments = s.h.snake[us].length + s.h.snake[them].length;
  Features f;
  Picker p(f);
  p.pick(kOwnRows, own_features(s, us, flood.of[us]));
  p.pick(kOwnRows, own_features(s, them, flood.of[them]));
  p.pick(kPairRows, pair_features(s, us, them, flood));
  p.pick(kBoardRows, {(s.geo->cells - taken) / 4, segments / 4, s.h.num_food});
  return f;
}

}  // namespace snakekit
