// The official maps: how a game starts and what a map does to the board after each turn. Random
// numbers are our own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "board.h"
#include "rules.h"

namespace snakekit {

// A fresh board of the map in `settings`: snakes of three segments on the official start squares,
// food and hazards. Throws StateError for an unknown map, a size the map does not have and snakes
// that do not fit.
Board new_game(int width, int height, const std::vector<std::string>& ids, std::uint64_t seed,
               const Settings& settings);

// Food rule S alone: below the minimum exactly the shortage, otherwise one with the given chance.
// Free squares hold no food and no living body and are not next to a living head.
template <class T>
void spawn_food(State<T>& s, std::uint64_t seed);

// What the map does after a turn; to be called after `step`, with the game's one seed. Random
// numbers follow from seed and turn, where a region grows from the seed alone.
template <class T>
void update_map(State<T>& s, std::uint64_t seed);

// One whole turn of a real game: the moves, the royale ruleset's hazards, the map. Does nothing on
// a finished game.
template <class T>
void advance(State<T>& s, const Moves& moves, std::uint64_t seed);

}  // namespace snakekit
