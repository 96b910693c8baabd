// One turn by the official rules. Stages in the engine's order: move, health, hazards, feed,
// eliminate, and for constrictor grow.
#pragma once

#include <array>
#include <cstdint>

#include "state.h"

namespace snakekit {

// A move per seat; anything outside 0..3 means straight on.
using Moves = std::array<std::int8_t, Large::kSnakes>;

inline constexpr int kInvalidMove = -1;

// The engine's reading of an invalid word: from neck to head, `up` for a coiled or single segment.
template <class T>
int default_move(const State<T>& s, int seat);

// Plays one turn. Does nothing when the game is over already, as the engine does.
// `undo`, if given, receives what `unmake` needs.
template <class T>
void step(State<T>& s, const Moves& moves, Undo<T>* undo = nullptr);

// The engine's call that initialises a game: no moves, but constrictor grows at once.
template <class T>
void initialise(State<T>& s);

template <class T>
void unmake(State<T>& s, const Undo<T>& undo);

// Bit m: move m stays on the board and does not turn back into the own neck.
template <class T>
int legal_mask(const State<T>& s, int seat);

// Bit m: move m is not certain death this turn, whatever the others do on the board. (A body also
// opens when its owner leaves the board in the same turn; nobody is to count on that.)
template <class T>
int safe_mask(const State<T>& s, int seat);

}  // namespace snakekit
