// The games of one turn: every joint move of a batch of boards, and its equilibrium.
//
// Successors are the boards after the moves and before the map acts, so no food has spawned yet.
#pragma once

#include <cstdint>
#include <vector>

#include "leaves.h"
#include "regret.h"

namespace snakekit {

// Results of a batch, by root and slot; slots without a snake stay 0.
struct StageResults {
  float* policy;   // [games, slots, 4]
  float* outcome;  // [games, slots + 1], expected under the policies
  float* value;    // [games, slots], expected utility
  float* gap;      // [games], NashConv
};

class StageGames {
 public:
  // A game of more than `limit` joint moves is cut to `kept` of them: the least likely moves of the
  // seats with most candidates are left out.
  StageGames(int slots, int limit, int kept) : leaves_(slots), limit_(limit), kept_(kept) {}

  // Enumerates the joint moves of each board: moves that are not certain death where there are
  // any, else legal ones. `priors` [boards, slots, 4], if given, tells which are likely.
  // Throws StateError for boards of different sizes, more living snakes than slots, or fewer than
  // two.
  void load(const std::vector<const Board*>& boards, const float* priors);
  // The open successors of `shallower`, one game each, in their order.
  void load_leaves(const StageGames& shallower);

  // `outcomes` [leaves, slots + 1], see LeafSet::read. `fixed` [games, slots, 4], if given, has the
  // policies of seats that keep theirs, NaN where a seat learns; what it gives to moves that take
  // no part goes to the others.
  void solve(const float* outcomes, bool logits, float draw_worth, const RegretOptions& options,
             const StageResults& out, const float* fixed = nullptr);

  void encode_roots(std::uint8_t* out) const;
  [[nodiscard]] const LeafSet& leaves() const { return leaves_; }
  [[nodiscard]] int games() const { return static_cast<int>(games_.size()); }
  // Slots' seats [games, slots], -1 for none.
  void seats(std::int8_t* out) const;
  // 1 where a game was cut [games].
  void cut(std::uint8_t* out) const;
  // 1 where a move takes part [games, slots, 4].
  void candidates(std::uint8_t* out) const;

 private:
  struct Game {
    Roster roster;
    int first_line = 0;
    bool cut = false;
    StageShape shape;
    std::array<std::array<std::int8_t, kMoves>, kMaxSlots> moves{};
  };

  template <class T>
  void enumerate(const State<T>& s, const float* prior);
  template <class T>
  [[nodiscard]] Game begin(const State<T>& s, const float* prior) const;
  std::array<const float*, kMaxSlots> keep(const Game& game, const float* fixed);
  void write(const Game& game, const float* policy, std::size_t index, const StageResults& out);

  LeafSet leaves_;
  int limit_;
  int kept_;
  std::vector<State<Small>> small_;
  std::vector<State<Large>> large_;
  std::vector<Game> games_;
  StageSolver solver_;
  std::vector<float> utility_, policy_, fixed_;
};

}  // namespace snakekit
