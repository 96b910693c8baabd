// Hazards that change from turn to turn. `turn` is the number of the turn just played, from 0.
#pragma once

#include <cstdint>

#include "../state.h"

namespace snakekit {

// Makes the hazards the complement of the board shrunk `steps` times, each time on a random side.
template <class T>
void shrink_to(State<T>& s, std::uint64_t seed, int steps);

// What the growing and the stacking maps do after this turn; nothing for any other map.
template <class T>
void change_hazards(State<T>& s, std::uint64_t seed, int turn);

// snail_mode: layers wear off, pending ones come down, leaving tails make new pending ones.
void trail_hazards(State<Large>& s);

}  // namespace snakekit
