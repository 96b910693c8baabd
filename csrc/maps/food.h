// Where and when food appears.
#pragma once

#include <cstdint>

#include "../state.h"

namespace snakekit {

// Food rule S. Rivers and bridges keep food off hazards.
template <class T>
void spawn_by_rule(State<T>& s, std::uint64_t seed, bool off_hazards);

// One food on the list's free squares while there are fewer than `most`, from turn 10 on.
template <class T>
void spawn_castle_food(State<T>& s, std::uint64_t seed);

// The arcade's list, by chance alone: minimumFood does not count.
template <class T>
void spawn_arcade_food(State<T>& s, std::uint64_t seed);

}  // namespace snakekit
