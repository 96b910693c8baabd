// The evaluation's weights, all in one table so that they can be tuned by play.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace snakekit {

// What the evaluation looks at; most are the own value less the mean of the others'.
struct Term {
  enum : int {
    kArea,      // cells reached first
    kInner,     // of these, cells off the edge
    kShort,     // cells that a closed-in snake lacks for its length
    kClosed,    // closed in
    kLength,    // segments ahead of the longest other, up to kLengthCap
    kLonger,    // 1 if strictly longest, -1 if another is longer
    kFoods,     // pieces of food reached first
    kFood,      // nearness of the first of them
    kHungry,    // the same, times hunger
    kStarving,  // no food in time, times hunger
    kHealth,    // tenths of health
    kCentre,    // steps from the head to the nearest edge
    kHazard,    // health lost each turn where the head is
    kOthers,    // living others beyond the first
    kCount
  };
};
inline constexpr int kTerms = Term::kCount;

inline constexpr std::array<const char*, kTerms> kTermNames{
    "area", "inner",  "short",    "closed", "length", "longer", "foods",
    "food", "hungry", "starving", "health", "centre", "hazard", "others"};

// In parts of a point, kEvalUnit to one. Sixteen bits, so that one instruction takes eight.
using TermWeights = std::array<std::int16_t, kTerms>;
inline constexpr int kMaxWeight = 32'000;

struct EvalWeights {
  TermWeights duel{143, 24, -1042, 2550, 2122, 1541, 271, 38, -112, -1893, 186, -1331, -32, 0};
  TermWeights many{137, -25, -755, 1863, 2797, 1736, 934, 90, -44, -2261, 727, -582, -32, -5884};
};

// Every weight by its table's and its term's name, as in `duel.area`.
struct WeightName {
  const char* table;
  const char* term;
  TermWeights EvalWeights::* member;
  int at;

  [[nodiscard]] std::string text() const { return std::string(table) + "." + term; }
  std::int16_t& in(EvalWeights& w) const { return (w.*member)[at]; }
};

inline std::array<WeightName, 2 * kTerms> weight_names() {
  std::array<WeightName, 2 * kTerms> names{};
  for (int i = 0; i < kTerms; ++i) {
    names[i] = {"duel", kTermNames[i], &EvalWeights::duel, i};
    names[kTerms + i] = {"many", kTermNames[i], &EvalWeights::many, i};
  }
  return names;
}

}  // namespace snakekit
