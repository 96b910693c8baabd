// Seeded choices that the maps share. Each kind of choice has its own stream, so that one map's
// food does not move when its hazards draw one number more.
#pragma once

#include <cstdint>
#include <utility>

#include "../rng.h"

namespace snakekit {

enum class Stream : std::uint64_t {
  kSetUp = 0x57a7,
  kRegion = 0x4e61,
  kPools = 0x9001,
  kMaze = 0x3a2e,
};

inline Rng stream(std::uint64_t seed, Stream s, std::uint64_t index = 0) {
  return Rng(seed + index, static_cast<std::uint64_t>(s));
}

// Uniform in [low, high].
inline int between(Rng& rng, int low, int high) { return low + rng.below(high - low + 1); }

template <class It>
void shuffle(It begin, It end, Rng& rng) {
  for (int i = static_cast<int>(end - begin) - 1; i > 0; --i)
    std::swap(begin[i], begin[rng.below(i + 1)]);
}

}  // namespace snakekit
