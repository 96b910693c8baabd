// Observation v3: one picture of the board for all seats, which a network answers for all of them.
//
// The living seats take the slots 0, 1, ... in the order of their seats; a slot without a snake is
// zero. Aligned with the board: row 0 is y = 0. Every plane turns with the board, and exchanging
// two seats exchanges their planes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "../area.h"
#include "../encode.h"
#include "../state.h"
#include "roster.h"

namespace snakekit {

enum V3Common : int {
  kAllBoard,        // 1 on the board
  kAllFood,         // 1
  kAllHarm,         // health lost here: layers times damage
  kAllHeal,         // health won here
  kAllWrapped,      // 1 all over the board
  kAllConstrictor,  // 1 all over the board
  kV3Common
};

// Planes of one slot.
enum V3Slot : int {
  kSlotHead,       // 1
  kSlotBody,       // turns until the cell is free
  kSlotHealth,     // 0..100, all over the board
  kSlotLength,     // all over the board
  kSlotLead,       // 16 + how much longer than the longest other, 0..32, all over the board
  kSlotArrival,    // 65 - turns to get here, 0 where it does not
  kSlotArea,       // 1 where it arrives first, or together with none as long
  kSlotDanger,     // 1 where it can be next turn, and so can one at least as long
  kSlotChallenge,  // 1 where it can be next turn, and so can shorter ones only
  // At the head the evaluation, at cells it can step to what is left of it after the worst reply:
  // the score and 2048, in 256ths and the rest. 0 elsewhere.
  kSlotWorst,
  kSlotWorstRest,
  kSlotHope,  // there too: 128 + the mean over all replies, see Standing::hope; 0 elsewhere
  kV3Slot
};

inline constexpr int kEvenLead = 16;

constexpr int v3_planes(int slots) { return kV3Common + slots * kV3Slot; }
// The network divides each plane by this.
std::vector<float> v3_scale(int slots);

// Writes v3_planes(slots) planes; cells beyond the board are zero. No more than `slots` seats live.
template <class T>
void encode_v3(const State<T>& s, int slots, PlaneView out);

}  // namespace snakekit
