// Board sizes and what follows from them: cell numbers, neighbours, masks.
//
// A cell on the board is y * width + x. Points off the board (heads of snakes that died at a wall)
// have codes above that, so that every recorded body fits one array of cells.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "bits.h"

namespace snakekit {

enum Move : int { kUp = 0, kDown = 1, kLeft = 2, kRight = 3 };
inline constexpr int kMoves = 4;
inline constexpr int kMinSide = 3;
inline constexpr int kMaxSide = 25;

// Boards of at most 121 cells with at most four snakes on the list.
struct Small {
  using Cell = std::uint8_t;
  static constexpr int kWords = 2;
  static constexpr int kCells = 128;  // capacity on the board
  static constexpr int kBorder = 1;   // how far off the board a body can be held
  static constexpr int kCodes = 256;
  static constexpr int kRing = 128;  // capacity of one body
  static constexpr int kLayers = kCells;
  static constexpr int kMaxBodyExcess = 4;
  static constexpr int kSnakes = 4;
};

// Everything else: 25x25, eight living snakes and eight dead ones.
struct Large {
  using Cell = std::uint16_t;
  static constexpr int kWords = 10;
  static constexpr int kCells = 640;
  static constexpr int kBorder = 8;
  static constexpr int kCodes = 625 + 41 * 41;
  static constexpr int kRing = 1024;
  // snail_mode keeps hazards that are still to come one board height above their square.
  static constexpr int kLayers = 2 * kCells;
  static constexpr int kMaxBodyExcess = 320;
  static constexpr int kSnakes = 16;
};

template <class T>
struct Geometry {
  using Cell = typename T::Cell;
  using Set = Bits<T::kWords>;

  int width = 0;
  int height = 0;
  int cells = 0;
  bool wrapped = false;
  std::array<std::uint8_t, T::kCells> row{};    // y of a cell
  std::array<std::uint8_t, T::kCells> depth{};  // steps to the nearest edge, unless wrapped
  std::array<std::array<Cell, kMoves>, T::kCodes> next{};  // neighbour in the direction of a move
  Set board, not_left, not_right, left, right, bottom, top;
  Set inner;  // cells off the edge; all where edges wrap

  [[nodiscard]] bool holds(int x, int y) const {
    return x >= -T::kBorder && y >= -T::kBorder && x < width + T::kBorder &&
           y < height + T::kBorder;
  }
  [[nodiscard]] Cell code(int x, int y) const;
  [[nodiscard]] std::pair<int, int> point(int code) const {
    if (code >= cells) [[unlikely]]
      return beyond(code);
    return {code - row[code] * width, row[code]};
  }

  // All cells next to one of `s`, on the board.
  [[nodiscard]] Set neighbours(const Set& s) const {
    Set r = s.up(width) | s.down(width) | (s & not_right).up(1) | (s & not_left).down(1);
    if (wrapped) r |= wrapped_neighbours(s);
    return r & board;
  }

  // Shared tables, made on first use; valid for the life of the process.
  static const Geometry& get(int width, int height, bool wrapped);

 private:
  [[nodiscard]] std::pair<int, int> beyond(int code) const;
  [[nodiscard]] Set wrapped_neighbours(const Set& s) const;
  void fill(int w, int h, bool wrap);
};

extern template struct Geometry<Small>;
extern template struct Geometry<Large>;

}  // namespace snakekit
