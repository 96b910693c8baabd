// Who reaches which cell when, through bodies that move on: the basis of area planes and
// evaluation.
#pragma once

#include <array>
#include <cstdint>

#include "state.h"

namespace snakekit {

// The cells that living bodies still block, turn by turn. A segment i of a snake of length n is
// gone after n - i turns (a head counts as its first segment), if nobody eats.
template <class T>
class Vacating {
 public:
  using Set = Bits<T::kWords>;

  explicit Vacating(const State<T>& s) : s_(s) {
    for (int i = 0; i < s.seats; ++i) {
      if (!s.alive(i)) continue;
      blocked_ |= s.h.snake[i].body;
      blocked_.set(s.head(i));
      if (s.h.snake[i].length > longest_) longest_ = s.h.snake[i].length;
      irregular_ |= s.h.snake[i].irregular;
    }
  }

  // Lets one more turn pass.
  void advance() {
    ++turn_;
    if (turn_ > longest_) return;
    if (irregular_) [[unlikely]] {
      recount();
      return;
    }
    for (int i = 0; i < s_.seats; ++i) {
      if (!s_.alive(i)) continue;
      const int left = s_.h.snake[i].length - turn_;  // segments 0..left-1 remain
      if (left < 0) continue;
      const auto gone = s_.segment(i, left);
      if (left == 0 || s_.segment(i, left - 1) != gone) blocked_.clear(gone);
    }
  }

  [[nodiscard]] Set free() const { return ~blocked_ & s_.geo->board; }
  [[nodiscard]] const Set& blocked() const { return blocked_; }
  [[nodiscard]] int turn() const { return turn_; }
  [[nodiscard]] bool all_gone() const { return turn_ >= longest_; }

 private:
  void recount() {
    blocked_ = Set{};
    for (int i = 0; i < s_.seats; ++i) {
      if (!s_.alive(i)) continue;
      for (int j = 0; j < s_.h.snake[i].length - turn_; ++j) blocked_.set(s_.segment(i, j));
    }
  }

  const State<T>& s_;
  Set blocked_;
  int turn_ = 0;
  int longest_ = 0;
  bool irregular_ = false;
};

inline constexpr int kMaxArrival = 64;

// Arrival turn of every living seat at every cell, kNever where it does not come within
// kMaxArrival turns; nobody arrives at the cell of its own head.
inline constexpr std::uint8_t kNever = 255;

template <class T>
struct Arrivals {
  std::array<std::array<std::uint8_t, T::kCells>, T::kSnakes> turn;

  explicit Arrivals(const State<T>& s);
};

extern template struct Arrivals<Small>;
extern template struct Arrivals<Large>;

}  // namespace snakekit
