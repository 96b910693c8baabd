// One board with everything the rules need, fixed in size and trivially copyable.
//
// The header is what a move changes; the rings, food and hazard arrays behind it change in at most
// a few known places. `Undo` keeps the header and those places, so that search can take a move back
// without copying a board.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "bits.h"
#include "geometry.h"
#include "maps/id.h"
#include "rng.h"

namespace snakekit {

enum class Cause : std::uint8_t { kNone, kHazard, kHealth, kWall, kSelf, kBody, kHead };

inline constexpr int kMaxHealth = 100;
inline constexpr int kMaxLayers = 255;  // of hazard on one cell

struct Rules {
  bool wrapped = false;
  bool constrictor = false;
  bool royale = false;
  bool solo = false;  // the game ends when nobody is left, not when one is
  std::int16_t hazard_damage = 14;
  std::int16_t food_spawn_chance = 15;
  std::int16_t minimum_food = 1;
  std::int16_t shrink_every = 25;
  MapId map = MapId::kStandard;

  friend bool operator==(const Rules&, const Rules&) = default;
};

// Random keys by cell; the place in the body enters as a power of an odd base.
constexpr std::uint64_t kHashBase = 0xd6e8feb86659fd93ULL;
constexpr std::uint64_t segment_key(int cell) noexcept {
  return mix64(0x5eedULL + static_cast<std::uint64_t>(cell));
}

struct HashTables {
  std::array<std::uint64_t, Large::kCodes> segment{};
  std::array<std::uint64_t, Large::kCells> food{};
  std::array<std::uint64_t, Large::kRing + 2> power{};
};
extern const HashTables kHash;

template <class T>
struct SnakeHeader {
  using Set = Bits<T::kWords>;

  Set body;                // cells of all segments but the head
  std::uint64_t hash = 0;  // polynomial over the body, head first
  std::int32_t out_turn = 0;
  std::int16_t front = 0;  // place of the head in the ring
  std::int16_t length = 0;
  std::int16_t health = 0;
  Cause cause = Cause::kNone;
  std::int8_t by = -1;     // seat of the killer
  bool irregular = false;  // overlaps itself elsewhere than at the tail
};

template <class T>
struct State {
  using Cell = typename T::Cell;
  using Set = Bits<T::kWords>;
  using Geo = Geometry<T>;

  struct Header {
    std::array<SnakeHeader<T>, T::kSnakes> snake;
    Set food;
    std::uint64_t food_hash = 0;
    std::int32_t turn = 0;
    std::uint16_t alive = 0;  // bit a seat
    std::int16_t num_food = 0;
  };

  const Geo* geo = nullptr;
  Rules rules;
  std::uint8_t seats = 0;
  Header h;
  Set hazard;                   // cells with at least one layer
  bool pending_hazard = false;  // there are layers above the board
  std::uint64_t hazard_hash = 0;
  std::array<std::array<Cell, T::kRing>, T::kSnakes> ring;
  std::array<Cell, T::kCells> food;  // in the engine's order
  std::array<std::uint8_t, T::kLayers> layers;

  [[nodiscard]] bool alive(int s) const { return (h.alive >> s) & 1; }
  [[nodiscard]] int living() const { return std::popcount(h.alive); }
  [[nodiscard]] Cell segment(int s, int i) const {
    return ring[s][(h.snake[s].front + i) & (T::kRing - 1)];
  }
  [[nodiscard]] Cell head(int s) const { return ring[s][h.snake[s].front]; }
  [[nodiscard]] Cell tail(int s) const { return segment(s, h.snake[s].length - 1); }
  [[nodiscard]] bool tail_stacked(int s) const {
    const int n = h.snake[s].length;
    return n > 1 && segment(s, n - 1) == segment(s, n - 2);
  }
  [[nodiscard]] bool on_board(int c) const { return c < geo->cells; }

  // Judged before the moves, as the engine does: the killing turn itself is not over.
  [[nodiscard]] bool game_over() const { return living() <= (rules.solo ? 0 : 1); }

  // Everything that decides how the game can go on, the random maps aside.
  [[nodiscard]] std::uint64_t hash() const {
    std::uint64_t x = mix64(h.food_hash + 0x51ed270b0a1c3b1fULL * hazard_hash);
    for (int s = 0; s < seats; ++s) {
      if (!alive(s)) continue;
      const auto& k = h.snake[s];
      x += mix64(k.hash ^ (static_cast<std::uint64_t>(k.health + 1) << 52) ^
                 (static_cast<std::uint64_t>(s + 1) << 60));
    }
    return x;
  }

  // Derived fields (sets, hashes) from the arrays; used after a state was filled by hand.
  void rebuild();
  void rebuild_body(int s);
  void rebuild_hazards();
  void add_food(Cell c);
  void clear_food();
  // Layers of hazard on a cell of the board, kept within 0..kMaxLayers.
  void set_layers(int c, int n);
  void add_layer(int c) { set_layers(c, layers[c] + 1); }
};

template <class T>
struct Undo {
  typename State<T>::Header header;
  std::array<typename T::Cell, T::kSnakes> popped;
  std::array<std::int16_t, T::kSnakes> eaten_at;
  std::array<typename T::Cell, T::kSnakes> eaten;
  int num_eaten;
};

static_assert(std::is_trivially_copyable_v<State<Small>>);
static_assert(std::is_trivially_copyable_v<State<Large>>);

extern template struct State<Small>;
extern template struct State<Large>;

}  // namespace snakekit
