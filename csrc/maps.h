// The standard map: where a game starts and where food appears. Random numbers are our own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "board.h"

namespace snakekit {

// A fresh board: snakes of three stacked segments at the official start squares (four corners and
// four edge centres of the inner ring, shuffled within their groups), food two steps from each
// start and in the centre. Throws StateError when the snakes do not fit.
Board new_game(int width, int height, const std::vector<std::string>& ids, std::uint64_t seed,
               const Settings& settings);

// Food rule S: below the minimum exactly the shortage, otherwise one with the given chance. Free
// squares hold no food and no living body and are not next to a living head.
template <class T>
void spawn_food(State<T>& s, std::uint64_t seed);

}  // namespace snakekit
