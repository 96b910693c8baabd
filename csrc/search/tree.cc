#include "tree.h"

namespace snakekit {

namespace {

constexpr int kClockEvery = 64;  // nodes between looks at the clock

// Decided scores count turns from the root in the tree and from the position in the table.
int to_table(int score, int ply) {
  if (score > kWinScore - kProofMargin) return score + ply;
  if (score < kProofMargin - kWinScore) return score - ply;
  return score;
}
int from_table(int score, int ply) {
  if (score > kWinScore - kProofMargin) return score - ply;
  if (score < kProofMargin - kWinScore) return score + ply;
  return score;
}

}  // namespace

template <class T>
Tree<T>::Tree(const State<T>& root, int us, const Limits& limits, const EvalWeights& weights,
              Table& table, Heuristics& heuristics, std::vector<Undo<T>>& undo,
              const std::atomic<bool>& cancelled)
    : s_(root),
      us_(us),
      limits_(limits),
      weights_(weights),
      table_(table),
      heuristics_(heuristics),
      undo_(undo),
      cancelled_(cancelled),
      begin_(Clock::now()) {
  deadline_ = limits.budget_us > 0 ? begin_ + std::chrono::microseconds(limits.budget_us)
                                   : Clock::time_point::max();
  std::array<int, kMaxAlive> others{};
  int n = 0;
  const auto [hx, hy] = s_.geo->point(s_.head(us));
  std::array<int, T::kSnakes> distance{};
  for (int i = 0; i < s_.seats; ++i) {
    if (i == us || !s_.alive(i)) continue;
    const auto [x, y] = s_.geo->point(s_.head(i));
    distance[i] = std::abs(x - hx) + std::abs(y - hy);
    others[n++] = i;
  }
  std::stable_sort(others.begin(), others.begin() + n,
                   [&](int a, int b) { return distance[a] < distance[b]; });
  contested_ = n > 0;
  num_active_ = std::min(n, 4);  // four moves each: at most 256 joint replies
  complete_ = num_active_ == n;
  idle_.fill(kInvalidMove);
  for (int i = 0; i < num_active_; ++i) active_[i] = others[i];
  salt_ =
      mix64(static_cast<std::uint64_t>(us) + 100ULL * static_cast<std::uint64_t>(s_.geo->width) +
            10'000ULL * static_cast<std::uint64_t>(s_.geo->height));
  salt_ ^= mix64((s_.rules.wrapped ? 1U : 0U) + (s_.rules.constrictor ? 2U : 0U) +
                 (s_.rules.solo ? 4U : 0U) + (complete_ ? 8U : 0U) + (contested_ ? 16U : 0U) +
                 (static_cast<std::uint64_t>(s_.rules.hazard_damage + 2000) << 8));
}

template <class T>
auto Tree<T>::outcome() const -> Outcome {
  const bool us = s_.alive(us_);
  const int others = s_.living() - (us ? 1 : 0);
  if (!us) return others > 0 ? Outcome::kLoss : (contested_ ? Outcome::kDraw : Outcome::kLoss);
  return others == 0 && contested_ ? Outcome::kWin : Outcome::kOpen;
}

template <class T>
bool Tree<T>::out_of_time() {
  if (stopped_) return true;
  if (!may_stop_) return false;
  if (limits_.max_nodes > 0 && nodes_ >= limits_.max_nodes) return stopped_ = true;
  if (nodes_ % kClockEvery != 0) return false;
  stopped_ = cancelled_.load(std::memory_order_relaxed) || Clock::now() >= deadline_;
  return stopped_;
}

template <class T>
void Tree<T>::make(int move, std::uint16_t reply, int ply) {
  Moves moves = idle_;
  moves[us_] = static_cast<std::int8_t>(move);
  for (int k = 0; k < num_active_; ++k)
    moves[active_[k]] = static_cast<std::int8_t>((reply >> (2 * k)) & 3);
  step(s_, moves, &undo_[ply]);
  ++nodes_;
}

template <class T>
int Tree<T>::order_moves(std::array<int, kMoves>& out, int tt_move) const {
  const int mask = safe_mask(s_, us_);
  const auto& history = heuristics_.history[0][s_.head(us_)];
  std::array<int, kMoves> weight{};
  int n = 0;
  for (int m = 0; m < kMoves; ++m) {
    // Without a safe move every move is tried: all may die together.
    if (mask != 0 && ((mask >> m) & 1) == 0) continue;
    weight[m] = m == tt_move ? 1 << 30 : history[m];
    int at = n++;
    for (; at > 0 && weight[out[at - 1]] < weight[m]; --at) out[at] = out[at - 1];
    out[at] = m;
  }
  return n;
}

template <class T>
int Tree<T>::head_distance(int seat) const {
  const auto [ax, ay] = s_.geo->point(s_.head(us_));
  const auto [bx, by] = s_.geo->point(s_.head(seat));
  int dx = std::abs(ax - bx);
  int dy = std::abs(ay - by);
  if (s_.geo->wrapped) {
    dx = std::min(dx, s_.geo->width - dx);
    dy = std::min(dy, s_.geo->height - dy);
  }
  return dx + dy;
}

template <class T>
void Tree<T>::list_replies(ReplyList& out, bool safe_only, std::uint16_t first,
                           int near_only) const {
  out.count = 1;
  out.code[0] = 0;
  for (int k = 0; k < num_active_; ++k) {
    const int seat = active_[k];
    if (!s_.alive(seat)) continue;
    int mask = safe_only ? safe_mask(s_, seat) : (1 << kMoves) - 1;
    if (mask == 0) mask = (1 << kMoves) - 1;
    std::array<int, kMoves> order{};
    const auto& history = heuristics_.history[1][s_.head(seat)];
    int n = 0;
    for (int m = 0; m < kMoves; ++m) {
      if (((mask >> m) & 1) == 0) continue;
      int at = n++;
      for (; at > 0 && history[order[at - 1]] < history[m]; --at) order[at] = order[at - 1];
      order[at] = m;
    }
    if (near_only > 0 && head_distance(seat) > 2 * near_only) n = 1;
    const int before = out.count;
    for (int j = n - 1; j >= 0; --j) {
      for (int i = 0; i < before; ++i) {
        out.code[j * before + i] = static_cast<std::uint16_t>(out.code[i] | order[j] << (2 * k));
      }
    }
    out.count = before * n;
  }
  for (int i = 1; i < out.count; ++i) {
    if (out.code[i] != first) continue;
    std::rotate(out.code.begin(), out.code.begin() + i, out.code.begin() + i + 1);
    break;
  }
}

template <class T>
int Tree<T>::min_reply(int move, int depth, int alpha, int beta, int ply,
                       std::uint16_t& refutation) {
  ReplyList replies;
  // Against several opponents those too far away to meet us follow their best habit. Proofs do not
  // rely on it; the plain rule would, so there all are followed.
  const bool prune = limits_.far_pruning && num_active_ > 1 && limits_.proof == Proof::kSound;
  list_replies(replies, true, refutation, prune ? depth : 0);
  int worst = kWinScore;
  for (int i = 0; i < replies.count; ++i) {
    make(move, replies.code[i], ply);
    const int v = alpha_beta(depth - 1, alpha, std::min(beta, worst), ply + 1);
    unmake(ply);
    if (stopped_) return worst;
    if (v < worst) {
      worst = v;
      refutation = replies.code[i];
    }
    if (worst <= alpha) {
      heuristics_.killer_reply[ply] = refutation;
      for (int k = 0; k < num_active_; ++k) {
        if (s_.alive(active_[k]))
          heuristics_.history[1][s_.head(active_[k])][(refutation >> (2 * k)) & 3] += depth * depth;
      }
      break;
    }
  }
  return worst;
}

template <class T>
int Tree<T>::alpha_beta(int depth, int alpha, int beta, int ply) {
  switch (outcome()) {
    case Outcome::kLoss:
      return ply - kWinScore;
    case Outcome::kWin:
      return kWinScore - ply;
    case Outcome::kDraw:
      return kDrawScore;
    case Outcome::kOpen:
      break;
  }
  if (out_of_time()) return alpha;
  if (depth <= 0 || ply >= kMaxDepth) return evaluate(s_, us_, weights_);
  const auto k = key(0);
  int tt_move = -1;
  std::uint16_t tt_reply = heuristics_.killer_reply[ply];
  if (const Entry* e = table_.find(k)) {
    const int score = from_table(e->score, ply);
    const bool deep_enough = e->depth >= depth || is_decided(score);
    const bool usable = e->bound == Bound::kExact || (e->bound == Bound::kLower && score >= beta) ||
                        (e->bound == Bound::kUpper && score <= alpha);
    if (deep_enough && usable) return score;
    tt_move = e->move;
    tt_reply = e->reply;
  }
  std::array<int, kMoves> moves;
  const int n = order_moves(moves, tt_move);
  const int alpha_before = alpha;
  int best = -kWinScore;
  int best_move = moves[0];
  std::uint16_t best_reply = tt_reply;
  for (int i = 0; i < n; ++i) {
    std::uint16_t reply = tt_reply;
    const int v = min_reply(moves[i], depth, alpha, beta, ply, reply);
    if (stopped_) return alpha;
    if (v > best) {
      best = v;
      best_move = moves[i];
      best_reply = reply;
    }
    alpha = std::max(alpha, v);
    if (alpha >= beta) break;
  }
  heuristics_.history[0][s_.head(us_)][best_move] += depth * depth;
  Entry e;
  e.key = k;
  e.score = static_cast<std::int16_t>(to_table(best, ply));
  e.depth = static_cast<std::uint8_t>(depth);
  e.move = static_cast<std::uint8_t>(best_move);
  e.reply = best_reply;
  e.bound = best >= beta ? Bound::kLower : (best > alpha_before ? Bound::kExact : Bound::kUpper);
  table_.store(e);
  return best;
}

template <class T>
bool Tree<T>::search_root(int depth, SearchResult& r) {
  std::array<int, kMoves> score{};
  for (int i = 0; i < root_count_; ++i) {
    const int m = root_order_[i];
    std::uint16_t reply = heuristics_.killer_reply[0];
    score[m] = min_reply(m, depth, -kWinScore, kWinScore, 0, reply);
    if (stopped_) return false;
  }
  for (int i = 0; i < root_count_; ++i) {
    const int m = root_order_[i];
    r.searched[m] = true;
    r.score[m] = score[m];
  }
  std::stable_sort(root_order_.begin(), root_order_.begin() + root_count_,
                   [&](int a, int b) { return score[a] > score[b]; });
  r.depth = depth;
  return true;
}

template <class T>
std::optional<Stop> Tree<T>::settled(const SearchResult& r) const {
  const bool proves = limits_.proof == Proof::kSound && complete_ && contested_;
  bool all_lost = true;
  bool all_known = true;
  for (int i = 0; i < root_count_; ++i) {
    const int m = root_order_[i];
    if (r.label[m] == Label::kWin) return Stop::kProved;
    all_lost &= r.label[m] == Label::kLoss;
    // A pessimistic loss that is not proved yet may be told from a proved one by looking deeper.
    all_known &= r.label[m] != Label::kNone || r.score[m] == kDrawScore ||
                 (!proves && is_decided(r.score[m]));
  }
  if (all_lost) return Stop::kProved;
  return all_known ? std::optional(Stop::kDepth) : std::nullopt;
}

template <class T>
SearchResult Tree<T>::run() {
  SearchResult r;
  int mask = legal_mask(s_, us_);
  if (mask == 0) mask = (1 << kMoves) - 1;
  const int safe = safe_mask(s_, us_);
  for (int m = 0; m < kMoves; ++m) {
    if ((mask >> m) & 1) root_order_[root_count_++] = m;
  }
  std::stable_sort(root_order_.begin(), root_order_.begin() + root_count_, [&](int a, int b) {
    const int sa = (safe >> a) & 1;
    const int sb = (safe >> b) & 1;
    return sa != sb ? sa > sb : limits_.priors[a] > limits_.priors[b];
  });
  r.best = root_order_[0];
  r.stopped = Stop::kDepth;
  for (int depth = 1; depth <= std::min(limits_.max_depth, kMaxDepth - 1); ++depth) {
    const auto nodes_before = nodes_;
    if (!search_root(depth, r)) break;
    may_stop_ = true;
    if (limits_.proof == Proof::kArticle) {
      label_article(r);
    } else if (complete_ && contested_) {
      // Proofs may cost as much again as the iteration that made them look possible.
      proof_limit_ = nodes_ + std::max<std::int64_t>(4000, nodes_ - nodes_before);
      prove(depth, r);
    }
    if (const auto end = settled(r)) {
      r.stopped = *end;
      break;
    }
    if (std::popcount(static_cast<unsigned>(safe)) == 1 && limits_.budget_us > 0) {
      r.stopped = Stop::kSingle;
      break;
    }
    if (stopped_ || cancelled_.load(std::memory_order_relaxed) || Clock::now() >= deadline_) {
      stopped_ = true;
      break;
    }
  }
  if (stopped_) {
    const bool spent = limits_.max_nodes > 0 && nodes_ >= limits_.max_nodes;
    r.stopped = cancelled_.load(std::memory_order_relaxed) ? Stop::kCancelled
                                                           : (spent ? Stop::kNodes : Stop::kTime);
  }
  choose(r);
  principal_variation(r);
  r.nodes = nodes_;
  r.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  return r;
}

template <class T>
void Tree<T>::choose(SearchResult& r) const {
  const auto better = [&](int a, int b) {
    const auto rank = [&](int m) {
      return r.label[m] == Label::kWin ? 2 : (r.label[m] == Label::kLoss ? 0 : 1);
    };
    if (rank(a) != rank(b)) return rank(a) > rank(b);
    if (rank(a) == 2 && r.distance[a] != r.distance[b]) return r.distance[a] < r.distance[b];
    if (rank(a) == 0 && r.distance[a] != r.distance[b]) return r.distance[a] > r.distance[b];
    return r.score[a] > r.score[b];
  };
  r.best = root_order_[0];
  for (int i = 1; i < root_count_; ++i) {
    if (better(root_order_[i], r.best)) r.best = root_order_[i];
  }
}

template <class T>
void Tree<T>::principal_variation(SearchResult& r) {
  r.pv.assign(1, r.best);
  int ply = 0;
  std::uint16_t reply = 0;
  // The table holds the answer to our move only one turn later, so the first reply is searched
  // again at the cheapest depth.
  may_stop_ = false;
  stopped_ = false;
  min_reply(r.best, 1, -kWinScore, kWinScore, 0, reply);
  make(r.best, reply, ply++);
  while (ply < r.depth && outcome() == Outcome::kOpen) {
    const Entry* e = table_.find(key(0));
    if (e == nullptr || e->depth == 0) break;
    r.pv.push_back(e->move);
    make(e->move, e->reply, ply++);
  }
  while (ply > 0) unmake(--ply);
}

template class Tree<Small>;
template class Tree<Large>;

}  // namespace snakekit
