// Positions that joint plays lead to, with exact values where the game has ended.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "../board.h"
#include "encode_all.h"

namespace snakekit {

// Throws StateError for fewer than two living snakes, or more than `slots`.
template <class T>
void check_players(const State<T>& s, int slots, const std::string& name) {
  if (s.living() < 2)
    throw StateError(name + ": expected at least two living snakes, found " +
                     std::to_string(s.living()));
  if (s.living() > slots)
    throw StateError(name + ": " + std::to_string(s.living()) + " living snakes for " +
                     std::to_string(slots) + " slots");
}

// Where one joint play led. Slots are those of the root: its living seats in order.
struct Line {
  std::int32_t leaf = -1;    // index of the open position, -1 where the game has ended
  std::int8_t players = 0;   // living at the root
  std::int8_t living = 0;    // at the leaf
  std::int8_t winner = -1;   // root slot; -1 at an end without a winner
  std::uint8_t sharers = 0;  // root slots that died together as the last ones, one bit each
  std::array<std::uint8_t, kMaxSlots> root_slot{};  // of each slot of the leaf
};

// A batch of lines on boards of one size. Outcomes are `slots` chances to win, then that of a draw;
// utilities are chances to win plus an equal part of the draw times its worth. Worth 1 makes them
// sum to one; less makes a draw something to avoid.
class LeafSet {
 public:
  explicit LeafSet(int slots) : slots_(slots) {}

  // Forgets all lines; later ones are on boards like this one.
  void reset(const Board& like);
  void reset(const LeafSet& like);

  template <class T>
  void add(const Roster& roster, const State<T>& after);

  // Takes `outcomes` [leaves, slots + 1] of the open positions over the leaf's own slots, as
  // probabilities or as logits, and fills outcome and utility of every line.
  void read(const float* outcomes, bool logits, float draw_worth);

  void encode(std::uint8_t* out) const;  // [leaves, planes, height, width]

  [[nodiscard]] int slots() const { return slots_; }
  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }
  [[nodiscard]] bool is_large() const { return is_large_; }
  [[nodiscard]] int leaves() const {
    return static_cast<int>(is_large_ ? large_.size() : small_.size());
  }
  [[nodiscard]] int lines() const { return static_cast<int>(lines_.size()); }
  [[nodiscard]] const float* outcome(int line) const {
    return outcome_.data() + static_cast<std::ptrdiff_t>(line) * (slots_ + 1);
  }
  [[nodiscard]] const float* utility(int line) const {
    return utility_.data() + static_cast<std::ptrdiff_t>(line) * slots_;
  }
  template <class T>
  [[nodiscard]] const std::vector<State<T>>& open() const {
    if constexpr (std::is_same_v<T, Large>) {
      return large_;
    } else {
      return small_;
    }
  }

 private:
  void read_open(const Line& line, const float* given, bool logits, float draw_worth,
                 float* outcome, float* utility) const;

  int slots_;
  int width_ = 0;
  int height_ = 0;
  bool is_large_ = false;
  std::vector<State<Small>> small_;
  std::vector<State<Large>> large_;
  std::vector<Line> lines_;
  std::vector<float> outcome_, utility_;
};

}  // namespace snakekit
