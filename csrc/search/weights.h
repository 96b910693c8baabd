// The evaluation's weights, all in one table so that they can be tuned by play.
#pragma once

#include <array>
#include <utility>

namespace snakekit {

// Units: hundredths of nothing in particular; one owned cell is kCell.
struct EvalWeights {
  int cell = 10;     // each cell reached first
  int trapped = 25;  // each cell short of the own length
  int length = 80;   // each segment ahead of the longest other, up to length_cap
  int length_cap = 8;
  int longest = 150;   // being strictly longest
  int food = 2;        // nearness of food reached first, times hunger
  int starving = 900;  // no food in reach in time
  int opponent = 200;  // each living opponent beyond the first
};

// Every weight by name.
inline constexpr std::array<std::pair<const char*, int EvalWeights::*>, 8> kWeightNames{{
    {"cell", &EvalWeights::cell},
    {"trapped", &EvalWeights::trapped},
    {"length", &EvalWeights::length},
    {"length_cap", &EvalWeights::length_cap},
    {"longest", &EvalWeights::longest},
    {"food", &EvalWeights::food},
    {"starving", &EvalWeights::starving},
    {"opponent", &EvalWeights::opponent},
}};

}  // namespace snakekit
