// A learned value: one layer over the rows that a position picks, in whole numbers, then a weighted
// sum of its clipped squares. The idea is that of the evaluation networks of chess engines
// (Nasu, "Efficiently Updatable Neural-Network-based Evaluation Functions", 2018), without the
// updates: a turn changes most of what is looked at.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "features.h"

namespace snakekit {

inline constexpr int kHidden = 32;
inline constexpr int kHiddenOne = 255;  // what 1 is in the layer; values are clipped to 0..1
inline constexpr int kPointParts = 16;  // of the weights that give points

class LearnedValue {
 public:
  // What it was made for: two snakes by the standard rules, without hazards.
  template <class T>
  [[nodiscard]] static bool knows(const State<T>& s) {
    return s.living() == 2 && !s.rules.wrapped && !s.rules.constrictor && !s.hazard.any();
  }

  // For `us`, who is alive, in points.
  template <class T>
  [[nodiscard]] int operator()(const State<T>& s, int us, const Flood<T>& flood) const {
    return judge(list_features(s, us, flood));
  }
  [[nodiscard]] int judge(const Features& f) const;

  using Row = std::array<std::int16_t, kHidden>;

  alignas(64) std::array<Row, kFeatureRows> rows;
  alignas(64) Row bias;
  Row out;                                      // points that a unit at 1 is worth, in parts
  std::array<std::int32_t, kFeatureRows> skip;  // points of a row by itself, in parts
};

// From the bytes of a file (see network.cc), or null with what is wrong with it in `error`.
std::shared_ptr<LearnedValue> read_value(std::string_view bytes, std::string& error);
// The one that is built in, and its bytes.
std::string_view shipped_bytes();
std::shared_ptr<const LearnedValue> shipped_value();
// The one that observation v3 looks at; it stays when a better one is built in.
std::string_view standing_bytes();
const LearnedValue& standing_value();

}  // namespace snakekit
