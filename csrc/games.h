// Many games of one kind stepped together, for training and the arena.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "board.h"
#include "encode.h"
#include "search/search.h"

namespace snakekit {

enum class Result : std::int8_t { kNone = 0, kWin = 1, kLoss = -1, kDraw = 2 };

struct Row {
  std::int32_t game;
  std::int32_t seat;
};

class Games {
 public:
  // Throws StateError for sizes or snakes that do not fit.
  Games(int count, int width, int height, int snakes, std::uint64_t seed, const Settings& settings);

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] int seats() const { return seats_; }
  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }
  [[nodiscard]] Board board(int game) const;

  void alive(bool* out) const;               // [count, seats]
  void safe_masks(std::uint8_t* out) const;  // [count, seats], 0 for the dead
  void encode(int version, const Row* rows, int n, std::uint8_t* out) const;

  // Scores [n, 4] of a search from each row; -inf for moves that are not legal.
  void search(const Row* rows, int n, int max_depth, std::int64_t budget_us, int threads,
              float* out);

  // Moves [count, seats]. Steps, spawns food and starts finished games anew. `out` [count, seats]
  // gets each seat's result once, on the turn that decides it.
  void step(const std::int8_t* moves, std::int8_t* out);

 private:
  [[nodiscard]] Board fresh(int game) const;

  int count_;
  int width_;
  int height_;
  int seats_;
  std::uint64_t seed_;
  Settings settings_;
  std::vector<std::uint32_t> episode_;
  std::variant<std::vector<State<Small>>, std::vector<State<Large>>> states_;
  std::vector<std::unique_ptr<Searcher>> searchers_;
};

}  // namespace snakekit
