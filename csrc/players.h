// Small players without memory: a last resort, a baseline and a sparring partner.
#pragma once

#include <cstdint>

#include "state.h"

namespace snakekit {

// The safe move with the most room behind it that does not risk a lost head-to-head.
template <class T>
int reflex_move(const State<T>& s, int seat);

// Uniform over safe moves; over legal ones when none is safe.
template <class T>
int random_move(const State<T>& s, int seat, std::uint64_t seed);

// Towards the food it can reach soonest, avoiding lost head-to-heads and pockets shorter than
// itself; ties are broken by `seed`.
template <class T>
int greedy_move(const State<T>& s, int seat, std::uint64_t seed);

}  // namespace snakekit
