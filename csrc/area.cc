#include "area.h"

namespace snakekit {

template <class T>
Arrivals<T>::Arrivals(const State<T>& s) {
  using Set = Bits<T::kWords>;
  std::array<Set, T::kSnakes> reach;
  for (int i = 0; i < s.seats; ++i) {
    if (!s.alive(i)) continue;
    turn[i].fill(kNever);
    reach[i].set(s.head(i));
  }
  Vacating<T> bodies(s);
  bool grew = true;
  while ((grew || !bodies.all_gone()) && bodies.turn() < kMaxArrival) {
    bodies.advance();
    const auto free = bodies.free();
    grew = false;
    for (int i = 0; i < s.seats; ++i) {
      if (!s.alive(i)) continue;
      const Set fresh = s.geo->neighbours(reach[i]) & free & ~reach[i];
      if (!fresh.any()) continue;
      grew = true;
      const auto t = static_cast<std::uint8_t>(bodies.turn());
      fresh.for_each([&](int c) { turn[i][c] = t; });
      reach[i] |= fresh;
    }
  }
}

template struct Arrivals<Small>;
template struct Arrivals<Large>;

}  // namespace snakekit
