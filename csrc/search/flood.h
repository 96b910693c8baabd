// Who reaches which cell first, when all snakes spread over the board at once and bodies move on.
#pragma once

#include <array>

#include "../area.h"
#include "../state.h"

namespace snakekit {

inline constexpr int kFloodTurns = 48;
inline constexpr std::array<int, 3> kHorizons{2, 5, 10};  // turns, soonest first

// What one snake can count on.
template <class T>
struct Prospect {
  Bits<T::kWords> reach;   // cells it reaches first, its head's among them
  Bits<T::kWords> beside;  // cells next to these
  std::array<Bits<T::kWords>, kHorizons.size()>
      within;           // of two snakes only: of reach, after so many turns
  int room = 0;         // how many cells it reaches first
  int food_turn = 0;    // when it first comes to food, 0 never
  bool closed = false;  // it has used up its room before a way out opens
};

// A longer snake takes a cell that several reach at the same time; of equals none does. What the
// flood does not know: a snake that waits for a way out needs room to wait in.
template <class T>
class Flood {
 public:
  explicit Flood(const State<T>& s) {
    for (int i = 0; i < s.seats; ++i) {
      if (!s.alive(i)) continue;
      int at = count_++;
      for (; at > 0 && s.h.snake[seat_[at - 1]].length < s.h.snake[i].length; --at)
        seat_[at] = seat_[at - 1];
      seat_[at] = i;
    }
    if (count_ == 2) {
      run<2>(s);
    } else if (count_ == 1) {
      run<1>(s);
    } else {
      run<T::kSnakes>(s);
    }
  }

  std::array<Prospect<T>, T::kSnakes> of;  // of the living

 private:
  using Set = Bits<T::kWords>;

  template <int N>
  void run(const State<T>& s);

  // Gives each cell that several can enter this turn to the longest of them.
  template <int N>
  static Set share(std::array<Set, N>& fresh, const std::array<int, N>& length, int n) {
    if constexpr (N == 1) return fresh[0];
    if constexpr (N == 2) {
      const Set all = fresh[0] | fresh[1];
      const Set both = fresh[0] & fresh[1];
      fresh[1] &= ~both;
      if (length[0] == length[1]) fresh[0] &= ~both;
      return all;
    }
    Set taken;
    for (int k = 0; k < n;) {
      const int first = k;
      Set any;
      Set several;
      for (; k < n && length[k] == length[first]; ++k) {
        fresh[k] &= ~taken;
        several |= any & fresh[k];
        any |= fresh[k];
      }
      for (int j = first; j < k; ++j) fresh[j] &= ~several;
      taken |= any;
    }
    return taken;
  }

  std::array<int, T::kSnakes> seat_;  // living seats, the longest first
  int count_ = 0;
};

template <class T>
template <int N>
void Flood<T>::run(const State<T>& s) {
  // All in local arrays of known size, so that a duel is played out in registers.
  const int n = N == T::kSnakes ? count_ : N;
  std::array<Set, N> reach;
  std::array<Set, N> next;  // cells beside those reached
  std::array<Set, N> fresh;
  std::array<int, N> length{};
  std::array<int, N> room{};
  std::array<int, N> food_turn{};
  std::array<bool, N> closed{};
  std::array<std::array<Set, kHorizons.size()>, N> within;
  std::size_t noted = 0;
  Set taken;
  for (int k = 0; k < n; ++k) {
    reach[k].set(s.head(seat_[k]));
    next[k] = s.geo->neighbours(reach[k]);
    length[k] = s.h.snake[seat_[k]].length;
    room[k] = 1;
    taken |= reach[k];
  }
  Vacating<T> bodies(s);
  bool grew = true;
  bool waiting = true;  // somebody may still find a way
  while (waiting && bodies.turn() < kFloodTurns && (grew || !bodies.all_gone())) {
    bodies.advance();
    const Set shut = bodies.blocked() | taken;
    for (int k = 0; k < n; ++k) fresh[k] = closed[k] ? Set{} : next[k] & ~shut;
    taken |= share<N>(fresh, length, n);
    grew = waiting = false;
    for (int k = 0; k < n; ++k) {
      if (fresh[k].any()) {
        grew = waiting = true;
        reach[k] |= fresh[k];
        next[k] |= s.geo->neighbours(fresh[k]);
        room[k] = 0;
        if (food_turn[k] == 0 && (fresh[k] & s.h.food).any()) food_turn[k] = bodies.turn();
        continue;
      }
      if (closed[k]) continue;
      // It has made more steps than it has room for, and is too long to go round in there.
      if (room[k] == 0) room[k] = reach[k].count();
      closed[k] = bodies.turn() >= room[k] && length[k] >= room[k];
      waiting = waiting || !closed[k];
    }
    if (N == 2 && noted < kHorizons.size() && bodies.turn() == kHorizons[noted]) {
      for (int k = 0; k < n; ++k) within[k][noted] = reach[k];
      ++noted;
    }
    if (!grew && taken == s.geo->board) break;
  }
  for (; N == 2 && noted < kHorizons.size(); ++noted) {
    for (int k = 0; k < n; ++k) within[k][noted] = reach[k];
  }
  for (int k = 0; k < n; ++k) {
    auto& p = of[seat_[k]];
    p.reach = reach[k];
    if (N == 2) p.within = within[k];
    p.beside = next[k];
    p.room = room[k] == 0 ? reach[k].count() : room[k];
    p.food_turn = food_turn[k];
    p.closed = closed[k];
  }
}

}  // namespace snakekit
