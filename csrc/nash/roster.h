// The living seats of a board, in order, and the moves of theirs that are worth a thought.
#pragma once

#include <array>
#include <cstdint>

#include "../rules.h"

namespace snakekit {

inline constexpr int kMaxSlots = 8;

struct Roster {
  int count = 0;
  std::array<std::uint8_t, kMaxSlots> seat{};

  template <class T>
  static Roster of(const State<T>& s) {
    Roster r;
    for (int i = 0; i < s.seats && r.count < kMaxSlots; ++i) {
      if (s.alive(i)) r.seat[r.count++] = static_cast<std::uint8_t>(i);
    }
    return r;
  }
};

// Bit m: move m is not certain death, where a seat has such moves; else legal ones, else up.
template <class T>
int candidate_mask(const State<T>& s, int seat) {
  const int safe = safe_mask(s, seat);
  if (safe != 0) return safe;
  const int legal = legal_mask(s, seat);
  return legal != 0 ? legal : 1 << kUp;
}

}  // namespace snakekit
