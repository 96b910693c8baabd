// The tree itself: one object per search and thread, nothing allocated below the root.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "../rules.h"
#include "budget.h"
#include "evaluate.h"
#include "search.h"
#include "table.h"
#include "team.h"

namespace snakekit {

inline bool is_win(int score) { return score > kWinScore - kProofMargin; }
inline bool is_loss(int score) { return score < kProofMargin - kWinScore; }
inline bool is_decided(int score) { return is_win(score) || is_loss(score); }

// Joint replies tried exhaustively up to this many; beyond it the farthest opponents go straight
// on.
inline constexpr int kMaxReplies = 256;

// Stable; std::stable_sort asks for memory.
template <class It, class F>
void sort_few(It begin, It end, F&& before) {
  for (It i = begin; i != end; ++i) std::rotate(std::upper_bound(begin, i, *i, before), i, i + 1);
}

template <class It, class V>
void bring_forward(It begin, It end, const V& first) {
  const auto at = std::find(begin, end, first);
  if (at != end) std::rotate(begin, at, at + 1);
}

struct ReplyList {
  // Two bits for each active opponent; behind them room for those that are put off.
  std::array<std::uint16_t, 2 * kMaxReplies> code;
  int count = 0;
};

inline constexpr std::uint16_t kNoReply = 0xffff;
inline constexpr int kShareFrom = 3;  // turns left, from where threads avoid each other

// What was good elsewhere in the tree, to order moves by.
template <class T>
struct Heuristics {
  // How often a move from a cell cut the tree, for us and for the others.
  std::array<std::array<std::array<int, kMoves>, T::kCodes>, 2> history{};

  // By the cells of our head and of the nearest opponent's: our last best move, and the reply that
  // last refuted each move. Each is an answer below the generation that it belongs to.
  static constexpr int kPlaces = 1 << 13;
  std::array<std::uint16_t, kPlaces> move{};
  std::array<std::uint16_t, kPlaces * kMoves> reply{};
  std::uint16_t generation = 0;

  // Begins a search, which does not depend on earlier ones. The large tables need no clearing.
  void renew() {
    history = {};
    if (++generation < 256) return;
    *this = Heuristics{};
    generation = 1;
  }
  [[nodiscard]] int recall(std::uint16_t stored, int otherwise) const {
    return stored >> 8 == generation ? stored & 255 : otherwise;
  }
  void keep(std::uint16_t& stored, int answer) const {
    stored = static_cast<std::uint16_t>(generation << 8 | answer);
  }
};

// What a search on one kind of board keeps for the next.
template <class T>
struct Workspace {
  static constexpr int kRoom = (kMoves + 1) * (2 * kMoves + 1);  // of the largest matrix

  Workspace() { room.reserve(kRoom); }

  Heuristics<T> heuristics;
  std::vector<Undo<T>> undo = std::vector<Undo<T>>(kMaxDepth + 2);
  std::vector<double> room;  // of solving matrix games
};

// Turns solved as matrix games, see exact.cc.
struct StageGame;
struct Oracle;

template <class T>
class Tree {
 public:
  Tree(const State<T>& root, int us, const Limits& limits, const Evaluation& evaluation,
       Table& table, Workspace<T>& work, const Signals& signals, Team* team = nullptr);

  SearchResult run();
  // Fills the table for the thread that runs, until that ends; returns positions stepped to.
  std::int64_t help();

 private:
  enum class Outcome { kWin, kLoss, kDraw, kOpen };

  struct RootMove {
    int move = 0;
    int score = -kWinScore;
    bool exact = false;
    Label label = Label::kNone;
    int distance = 0;
    int no_loss = 0;  // turns within which no loss is proved
    int no_win = 0;
  };

  [[nodiscard]] Outcome outcome() const;
  bool out_of_time();
  void make(int move, std::uint16_t reply, int ply);
  void unmake(int ply) { snakekit::unmake(s_, undo_[ply]); }

  [[nodiscard]] int open_value() const;
  std::optional<int> recall(std::uint64_t k, int depth, int alpha, int beta, int ply, int& move,
                            std::uint16_t& reply) const;
  void remember(std::uint64_t k, int depth, int ply, int score, Bound bound, int move,
                std::uint16_t reply);
  int max_node(int depth, int alpha, int beta, int ply);
  int min_node(int move, int depth, int alpha, int beta, int ply, std::uint16_t& refutation);
  int next_move(int move, int depth, int alpha, int beta, int ply, std::uint16_t& refutation);
  int next_reply(int depth, int alpha, int worst, int ply);
  void credit(std::uint16_t reply, int depth);
  int order_moves(std::array<int, 2 * kMoves>& out) const;
  // `near_only`: turns within which an opponent must be able to meet us, or it plays one move only.
  void list_replies(ReplyList& out, bool safe_only, std::uint16_t first, int near_only = 0) const;
  // Of every opponent by itself, likeliest first, the others keeping to their likeliest.
  void list_best_replies(ReplyList& out, std::uint16_t first, int near_only) const;
  [[nodiscard]] std::array<int, kMoves> reply_weights(int seat) const;
  int order_replies(std::array<int, kMoves>& out, int seat, bool safe_only) const;
  // Is another thread at this move or reply of a node? If not, this one is now.
  bool taken(std::uint64_t h, int depth);
  void done(std::uint64_t h, int depth) {
    if (team_ != nullptr && depth >= kShareFrom) team_->leave(h);
  }
  [[nodiscard]] int head_distance(int seat) const;
  // Where the heads are, as an index into Heuristics.
  [[nodiscard]] int place() const {
    const int nearest = num_active_ > 0 ? s_.head(active_[0]) : 0;
    return (s_.head(us_) * 127 + nearest) & (Heuristics<T>::kPlaces - 1);
  }

  // proofs.cc
  bool proved_loss(int depth, int ply);
  bool proved_win(int depth, int ply);
  bool all_replies_lose(int move, int depth);
  bool all_replies_win(int move, int depth);
  bool every_move_loses(std::uint16_t reply, int depth, int ply);
  bool every_reply_wins(int move, int depth, int ply);
  [[nodiscard]] std::optional<bool> proof_known(std::uint64_t k, int depth) const;
  void proof_store(std::uint64_t k, int depth, bool result);
  bool give_up();
  void prove(int depth, std::int64_t iteration_nodes);
  void prove_move(RootMove& r, int depth, bool win);
  void label_article();

  // exact.cc
  void list_stage(StageGame& g) const;
  double leaf_utility(int ply);
  double serialized(bool we_see, int turns, double alpha, double beta, int ply);
  void bound_cells(StageGame& g, int turns, int ply);
  void settle_cell(StageGame& g, int i, int j, int turns, int ply);
  bool improve_rows(StageGame& g, Oracle& o, int turns, int ply);
  bool improve_cols(StageGame& g, Oracle& o, int turns, int ply);
  double exact_value(int turns, int ply, std::array<double, kMoves>* mixture);
  [[nodiscard]] bool has_mixed_turns() const;
  void solve_root(SearchResult& r);

  // maxn.cc
  using Worths = std::array<int, T::kSnakes>;
  void worths(Worths& out, int ply) const;
  void max_n(int turns, int index, std::uint16_t reply, int move, int ply, Worths& out);
  int best_move_n(int turns, int ply, Worths& out);
  [[nodiscard]] bool sees_only_losses() const;
  [[nodiscard]] int choose_max_n(int otherwise);

  // root.cc
  void list_root();
  bool search_root(int depth);
  bool search_first(int depth);
  bool search_later(int index, int depth);
  void order_root(int count);
  void take_priors();
  [[nodiscard]] bool cancelled() const {
    return signals_.cancelled.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool can_prove() const {
    return limits_.proof == Proof::kSound && complete_ && contested_;
  }
  // Why there is nothing left to find, if so.
  [[nodiscard]] std::optional<Stop> settled() const;
  [[nodiscard]] std::optional<Stop> after_iteration(int depth, std::int64_t nodes_before, int best);
  [[nodiscard]] Stop hard_stop() const;
  [[nodiscard]] int choose() const;
  [[nodiscard]] int choose_mixed(const SearchResult& r) const;
  void report(SearchResult& r) const;
  void principal_variation(SearchResult& r);

  [[nodiscard]] std::uint64_t key(std::uint64_t salt) const { return s_.hash() ^ salt_ ^ salt; }

  State<T> s_;
  const int us_;
  const Limits limits_;
  const Evaluation& evaluation_;
  Table& table_;
  Heuristics<T>& heuristics_;
  std::vector<Undo<T>>& undo_;
  const Signals& signals_;
  Team* const team_;  // null for a single thread
  Budget budget_;
  std::array<float, kMoves> priors_;

  std::array<int, kMaxAlive> active_{};
  int num_active_ = 0;
  bool complete_ = true;    // all opponents are active, so proofs may be claimed
  bool contested_ = false;  // there was an opponent at the root, so outliving all is a win
  bool far_pruning_ = false;
  bool best_reply_ = false;
  bool exact_scores_ = false;
  Moves idle_;  // what inactive opponents play
  std::array<RootMove, kMoves> root_;
  int root_count_ = 0;
  int safe_root_ = 0;  // moves of the root that are not certain death
  std::uint64_t salt_ = 0;

  int leaf_depth_ = 0;         // of the searches below exactly solved turns
  std::vector<double>& room_;  // of solving them

  bool may_stop_ = false;  // the first iteration always completes
  bool stopped_ = false;
  std::int64_t nodes_ = 0;
  std::int64_t proof_limit_ = 0;
  bool proof_aborted_ = false;
};

}  // namespace snakekit
