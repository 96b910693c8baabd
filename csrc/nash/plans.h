// Plans: a seat's moves of the next few turns, decided now.
//
// A plan is a row of moves 0..3; kReflex leaves a turn to the reflex move. Slots are those of the
// root: its living seats in order.
#pragma once

#include <cstdint>
#include <vector>

#include "leaves.h"

namespace snakekit {

inline constexpr std::int8_t kReflex = -1;

// Boards after plans of all living seats.
class PlanLines {
 public:
  explicit PlanLines(int slots) : leaves_(slots) {}

  // Plays `plans` [lines, living seats, turns] from `board`; a line ends early with its game. With
  // `reflexes` a planned move that is certain death by then is replaced by the reflex move:
  // nobody walks into what came to stand in the way.
  void load(const Board& board, const std::int8_t* plans, int lines, int turns, bool reflexes);

  LeafSet& leaves() { return leaves_; }

 private:
  LeafSet leaves_;
};

// Plans drawn turn by turn from a policy that all seats follow together, so that they are made for
// likely futures.
class PlanWalk {
 public:
  PlanWalk(const Board& board, int count, int turns, int slots);

  // Boards on which the walk goes on; 0 when all plans are complete.
  [[nodiscard]] int open() const { return static_cast<int>(going_.size()); }
  void encode(std::uint8_t* out) const;  // [open, planes, height, width]
  // Draws a candidate move of each living seat from `logits` [open, slots, 4] and plays it.
  void step(const float* logits, std::uint64_t seed);

  [[nodiscard]] int seats() const { return roster_.count; }
  [[nodiscard]] int count() const { return static_cast<int>(boards_.size()); }
  [[nodiscard]] int turns() const { return turns_; }
  [[nodiscard]] int slots() const { return slots_; }
  [[nodiscard]] const Board& root() const { return root_; }
  // [living seats, count, turns]; kReflex where the seat or the game had ended.
  [[nodiscard]] const std::vector<std::int8_t>& plans() const { return plans_; }

 private:
  void find_open();

  Board root_;
  Roster roster_;
  int turns_;
  int slots_;
  int turn_ = 0;
  std::vector<Board> boards_;
  std::vector<int> going_;
  std::vector<std::int8_t> plans_;
};

// Replaces moves of a seat's `plans` [count, turns] that are kReflex or certain death by random
// candidates, against others that make their `expected` moves [living seats, turns], or the reflex
// move where it is null. Turns after the seat's own death become kReflex.
void complete_plans(const Board& board, int slot, const std::int8_t* expected, std::int8_t* plans,
                    int count, int turns, std::uint64_t seed);

}  // namespace snakekit
