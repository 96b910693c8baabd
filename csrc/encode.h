// Observations: what a network sees. Made here only, for training, serving and benchmarks alike.
//
// v1 is the layout of the Asymptotic Labs post mortem: 17 planes of 23x23, own head in the centre.
// v2 is aligned with the board (row 0 is y = 0) and adds hazards, rules and area planes.
#pragma once

#include <array>
#include <cstdint>

#include "area.h"
#include "state.h"

namespace snakekit {

inline constexpr int kV1Planes = 17;
inline constexpr int kV1Side = 23;

enum V2Plane : int {
  kBoard,          // 1 on the board
  kOwnHead,        // 1
  kOwnBody,        // turns until the cell is free
  kOtherHeads,     // 1
  kOtherBodies,    // turns until the cell is free
  kLongerBodies,   // bodies of others at least as long: difference + 1
  kShorterBodies,  // bodies of shorter others: difference
  kLongerThreat,   // 1 where the head of one at least as long can be next turn
  kShorterThreat,  // 1 where the head of a shorter one can be next turn
  kFood,           // 1
  kHarm,           // health lost here: layers times damage
  kHeal,           // health won here
  kOwnHealth,      // 0..100, all over the board
  kOtherHealth,    // on the heads
  kOwnArrival,     // 65 - turns to get here, 0 where we do not
  kOtherArrival,   // the same for the soonest of the others
  kOwnArea,        // 1 where we arrive first, or together with none as long
  kOtherArea,      // 1 where another does
  kOwnLength,      // all over the board
  kOthersAlive,    // how many, all over the board
  kWrapped,        // 1 all over the board
  kConstrictor,    // 1 all over the board
  kV2Planes
};

// The network divides each plane by this, so that uint8 travels.
extern const std::array<float, kV1Planes> kV1Scale;
extern const std::array<float, kV2Planes> kV2Scale;

// Divides `n` observations of `cells` cells a plane by the scale of their version.
void scale_planes(int version, const std::uint8_t* in, int n, int cells, float* out);

// A view of planes inside a larger buffer: `rows` and `cols` may exceed the board.
struct PlaneView {
  std::uint8_t* data;
  int rows;
  int cols;
};

// Writes 17 planes of 23x23. The seat may be dead: its last head is the centre.
template <class T>
void encode_v1(const State<T>& s, int seat, std::uint8_t* out);

// What the last observation left in a buffer, so that the next one need not clear all of it.
struct V1Trace {
  static constexpr int kMarks = 1000;
  std::array<std::uint16_t, kMarks> mark;  // where single cells were written, and what kind
  std::int16_t count = -1;                 // -1: unknown, the whole buffer has to be cleared
  std::int8_t rows[2] = {0, 0};
  std::int8_t cols[2] = {0, 0};
  std::int8_t count_plane = -1;
};

// The same planes into a buffer that only this function writes, with its trace.
template <class T>
void encode_v1(const State<T>& s, int seat, std::uint8_t* out, V1Trace& trace);

// Writes kV2Planes planes; cells beyond the board are zero.
template <class T>
void encode_v2(const State<T>& s, const Arrivals<T>& arrivals, int seat, PlaneView out);

}  // namespace snakekit
