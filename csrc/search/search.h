// Time-budgeted iterative deepening over whole turns, with proofs that a simultaneous game allows.
//
// Scores come from the order that favours the others (they see our move), so they are pessimistic.
// A label is a proof: `win` holds when the others see each of our later moves first, `loss` when we
// see each of theirs first and they answer our first move with anything but suicide. New food is
// not foreseen.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../board.h"
#include "evaluate.h"

namespace snakekit {

inline constexpr int kWinScore = 30000;  // minus the turns until then
// As good as a position that is nearly lost. At -200 two equal players, who both fear more than
// there is, would end most of their games head-on.
inline constexpr int kDrawScore = -1000;
inline constexpr int kMostDraw = 2000;    // beyond every evaluation, within every proof
inline constexpr int kProofMargin = 200;  // |score| > kWinScore - this means decided
inline constexpr int kMaxDepth = 100;     // turns

enum class Label : std::uint8_t { kNone, kWin, kLoss };
// Why a search ended: kEnough when another iteration could not finish or would not matter.
enum class Stop : std::uint8_t { kDepth, kTime, kNodes, kEnough, kProved, kSingle, kCancelled };
enum class Proof : std::uint8_t { kSound, kArticle };

// Whom several opponents play against: all against us, or us and one of them at a time
// (best-reply search, Schadd and Winands 2011).
enum class Opponents : std::uint8_t { kParanoid, kBestReply };

// Where the first turns of a duel are solved with mixed strategies: where the heads can meet within
// these turns, or everywhere.
enum class Mixing : std::uint8_t { kOff, kContested, kAlways };

struct Limits {
  std::int64_t budget_us = 0;  // hard limit in time, 0: none
  std::int64_t max_nodes = 0;  // hard limit in positions, 0: none
  // Share of the limits that no iteration passes once the move is settled; four times as much just
  // after it has changed, twice as much after one iteration more.
  double optimum = 0.5;
  int max_depth = kMaxDepth;
  Proof proof = Proof::kSound;
  int threads = 1;  // more search the same tree sooner, in an order that depends on their timing
  Opponents opponents = Opponents::kParanoid;
  bool max_n = true;  // decides where the paranoid view sees only losses
  bool far_pruning = true;
  bool early_stop = true;     // ends before the hard limit where the rest would be of no use
  bool selective = false;     // late moves are searched less deep at first
  bool exact_scores = false;  // of all root moves; otherwise those of worse moves are upper bounds
  Mixing mixing = Mixing::kContested;
  int draw_score = kDrawScore;  // -kMostDraw..kMostDraw
  int mixed_turns = 1;          // of a duel, solved with mixed strategies
  // Draws the move from their mixture with these random bits; otherwise the likeliest is played.
  std::optional<std::uint64_t> sample;
  // Of the root's moves, from a policy: they order what the search holds equal.
  std::array<float, kMoves> priors{};
};

struct SearchResult {
  int best = kUp;
  std::array<bool, kMoves> searched{};
  std::array<int, kMoves> score{};
  std::array<bool, kMoves> exact{};  // else the score is an upper bound
  std::array<Label, kMoves> label{};
  std::array<int, kMoves> distance{};  // turns to the proved end
  int depth = 0;                       // full turns completed
  std::int64_t nodes = 0;              // positions stepped to
  double seconds = 0;
  std::array<std::int8_t, kMaxDepth> line{};  // our moves of the principal variation
  int line_length = 0;
  // Of exactly solved turns: how often each move is best played, the value of that to us in -1..1,
  // and the turns looked ahead for it, 0 where there was nothing to solve.
  std::array<double, kMoves> mixture{};
  double value = 0;
  int mixed_depth = 0;
  Stop stopped = Stop::kDepth;
};

// What a score is worth to a mixed strategy, -1 (lost) to 1 (won).
double utility_of(int score);

// What other threads tell a running search.
struct Signals {
  std::atomic<bool> cancelled{false};
  std::atomic<std::uint64_t> priors{0};  // sixteen bits a move; 0 where nothing was said
};

class Searcher {
 public:
  explicit Searcher(int table_mb, Evaluation evaluation = Evaluation::shipped());
  ~Searcher();
  Searcher(const Searcher&) = delete;
  Searcher& operator=(const Searcher&) = delete;

  // The seat must be alive. One search at a time on one searcher.
  SearchResult search(const Board& board, int seat, const Limits& limits);
  template <class T>
  SearchResult search(const State<T>& state, int seat, const Limits& limits);

  // From any thread; a search that has not begun is not affected.
  void cancel() { signals_.cancelled.store(true, std::memory_order_relaxed); }
  // Priors (0..1) that come while it runs; its next iteration takes them up. Likewise.
  void prefer(const std::array<float, kMoves>& priors);
  // Claims the searcher; false if it is busy.
  bool acquire() { return !busy_.exchange(true, std::memory_order_acquire); }
  void release() { busy_.store(false, std::memory_order_release); }

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
  Evaluation evaluation_;
  Signals signals_;
  std::atomic<bool> busy_{false};
};

}  // namespace snakekit
