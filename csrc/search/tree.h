// The tree itself: one object per search, nothing allocated below the root.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "../rules.h"
#include "evaluate.h"
#include "search.h"
#include "table.h"

namespace snakekit {

inline bool is_decided(int score) {
  return score > kWinScore - kProofMargin || score < kProofMargin - kWinScore;
}

using Clock = std::chrono::steady_clock;

// Joint replies tried exhaustively up to this many; beyond it the farthest opponents go straight
// on.
inline constexpr int kMaxReplies = 256;

struct ReplyList {
  std::array<std::uint16_t, kMaxReplies> code;  // two bits for each active opponent
  int count = 0;
};

struct Heuristics {
  // How often a move from a cell cut the tree, for us and for the others.
  std::array<std::array<std::array<int, kMoves>, Large::kCodes>, 2> history{};
  std::array<std::uint16_t, kMaxDepth + 2> killer_reply{};
};

template <class T>
class Tree {
 public:
  Tree(const State<T>& root, int us, const Limits& limits, const EvalWeights& weights, Table& table,
       Heuristics& heuristics, std::vector<Undo<T>>& undo, const std::atomic<bool>& cancelled);

  SearchResult run();

 private:
  enum class Outcome { kWin, kLoss, kDraw, kOpen };

  [[nodiscard]] Outcome outcome() const;
  bool out_of_time();
  void make(int move, std::uint16_t reply, int ply);
  void unmake(int ply) { snakekit::unmake(s_, undo_[ply]); }

  int alpha_beta(int depth, int alpha, int beta, int ply);
  int min_reply(int move, int depth, int alpha, int beta, int ply, std::uint16_t& refutation);
  bool proved_loss(int depth, int ply);
  bool proved_win(int depth, int ply);
  bool all_replies_lose(int move, int depth);
  bool all_replies_win(int move, int depth);
  bool every_move_loses(std::uint16_t reply, int depth, int ply);
  bool every_reply_wins(int move, int depth, int ply);

  int order_moves(std::array<int, kMoves>& out, int tt_move) const;
  // `near_only`: turns within which an opponent must be able to meet us, or it plays one move only.
  void list_replies(ReplyList& out, bool safe_only, std::uint16_t first, int near_only = 0) const;
  [[nodiscard]] int head_distance(int seat) const;
  bool proof_known(std::uint64_t k, int depth, bool& result) const;
  void proof_store(std::uint64_t k, int depth, bool result);
  bool give_up();
  [[nodiscard]] std::uint64_t key(std::uint64_t salt) const { return s_.hash() ^ salt_ ^ salt; }

  bool search_root(int depth, SearchResult& r);
  void prove(int depth, SearchResult& r);
  void label_article(SearchResult& r) const;
  void choose(SearchResult& r) const;
  void principal_variation(SearchResult& r);
  // Why there is nothing left to find, if so.
  [[nodiscard]] std::optional<Stop> settled(const SearchResult& r) const;

  State<T> s_;
  const int us_;
  const Limits limits_;
  const EvalWeights weights_;
  Table& table_;
  Heuristics& heuristics_;
  std::vector<Undo<T>>& undo_;
  const std::atomic<bool>& cancelled_;

  std::array<int, kMaxAlive> active_{};
  int num_active_ = 0;
  bool complete_ = true;    // all opponents are active, so proofs may be claimed
  bool contested_ = false;  // there was an opponent at the root, so outliving all is a win
  Moves idle_;              // what inactive opponents play
  std::array<int, kMoves> root_order_{};
  int root_count_ = 0;
  std::uint64_t salt_ = 0;

  Clock::time_point begin_;
  Clock::time_point deadline_;
  bool may_stop_ = false;  // the first iteration always completes
  bool stopped_ = false;
  std::int64_t nodes_ = 0;
  std::int64_t proof_limit_ = 0;
  bool proof_aborted_ = false;
};

}  // namespace snakekit
