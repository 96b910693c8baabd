#include "tree.h"

namespace snakekit {

namespace {

constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15ULL;
constexpr std::uint64_t kReplySalt = 0x7e91;
constexpr int kClockEvery = 64;  // nodes between looks at the clock
constexpr int kTableFrom = 2;    // turns left, from where a look into the table saves its time
constexpr int kTowardsUs = 50;   // of history
constexpr int kReduceFrom = 3;   // turns left, from where late moves are first searched less deep

// Decided scores count turns from the root in the tree and from the position in the table.
int to_table(int score, int ply) {
  return is_win(score) ? score + ply : is_loss(score) ? score - ply : score;
}
int from_table(int score, int ply) {
  return is_win(score) ? score - ply : is_loss(score) ? score + ply : score;
}

}  // namespace

template <class T>
Tree<T>::Tree(const State<T>& root, int us, const Limits& limits, const Evaluation& evaluation,
              Table& table, Workspace<T>& work, const Signals& signals, Team* team)
    : s_(root),
      us_(us),
      limits_(limits),
      evaluation_(evaluation),
      table_(table),
      heuristics_(work.heuristics),
      undo_(work.undo),
      signals_(signals),
      team_(team),
      budget_(limits),
      priors_(limits.priors),
      room_(work.room) {
  work.heuristics.renew();
  std::array<int, kMaxAlive> others{};
  int n = 0;
  for (int i = 0; i < s_.seats; ++i) {
    if (i != us && s_.alive(i)) others[n++] = i;
  }
  sort_few(others.begin(), others.begin() + n,
           [&](int a, int b) { return head_distance(a) < head_distance(b); });
  contested_ = n > 0;
  num_active_ = std::min(n, 4);  // four moves each: at most 256 joint replies
  complete_ = num_active_ == n;
  // Against several opponents those too far away to meet us follow their best habit. Proofs do not
  // rely on it; the plain rule would, so there all are followed.
  far_pruning_ = limits.far_pruning && num_active_ > 1 && limits.proof == Proof::kSound;
  exact_scores_ = limits.exact_scores || limits.proof == Proof::kArticle;
  best_reply_ = limits.opponents == Opponents::kBestReply && num_active_ > 1;
  idle_.fill(kInvalidMove);
  for (int i = 0; i < num_active_; ++i) active_[i] = others[i];
  salt_ =
      mix64(static_cast<std::uint64_t>(us) + 100ULL * static_cast<std::uint64_t>(s_.geo->width) +
            10'000ULL * static_cast<std::uint64_t>(s_.geo->height));
  salt_ ^=
      mix64((s_.rules.wrapped ? 1U : 0U) + (s_.rules.constrictor ? 2U : 0U) +
            (s_.rules.solo ? 4U : 0U) + (complete_ ? 8U : 0U) + (contested_ ? 16U : 0U) +
            (far_pruning_ ? 32U : 0U) + (limits.selective ? 64U : 0U) + (best_reply_ ? 128U : 0U) +
            (static_cast<std::uint64_t>(s_.rules.hazard_damage + 2000) << 8) +
            (static_cast<std::uint64_t>(limits.draw_score + kMostDraw) << 32));
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
  stopped_ = budget_.out_of_nodes(nodes_) ||
             (nodes_ % kClockEvery == 0 &&
              (cancelled() || budget_.late() || (team_ != nullptr && team_->stopped())));
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
int Tree<T>::order_moves(std::array<int, 2 * kMoves>& out) const {
  const int mask = safe_mask(s_, us_);
  const auto& history = heuristics_.history[0][s_.head(us_)];
  int n = 0;
  for (int m = 0; m < kMoves; ++m) {
    // Without a safe move every move is tried: all may die together.
    if (mask != 0 && ((mask >> m) & 1) == 0) continue;
    int at = n++;
    for (; at > 0 && history[out[at - 1]] < history[m]; --at) out[at] = out[at - 1];
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

// How good an opponent's moves have been, and a little for those towards us.
template <class T>
std::array<int, kMoves> Tree<T>::reply_weights(int seat) const {
  auto weight = heuristics_.history[1][s_.head(seat)];
  const auto [ax, ay] = s_.geo->point(s_.head(us_));
  const auto [bx, by] = s_.geo->point(s_.head(seat));
  if (ax != bx) weight[ax < bx ? kLeft : kRight] += kTowardsUs;
  if (ay != by) weight[ay < by ? kDown : kUp] += kTowardsUs;
  return weight;
}

template <class T>
int Tree<T>::order_replies(std::array<int, kMoves>& out, int seat, bool safe_only) const {
  int mask = safe_only ? safe_mask(s_, seat) : (1 << kMoves) - 1;
  if (mask == 0) mask = (1 << kMoves) - 1;
  const auto weight = reply_weights(seat);
  int n = 0;
  for (int m = 0; m < kMoves; ++m) {
    if (((mask >> m) & 1) == 0) continue;
    int at = n++;
    for (; at > 0 && weight[out[at - 1]] < weight[m]; --at) out[at] = out[at - 1];
    out[at] = m;
  }
  return n;
}

template <class T>
void Tree<T>::list_replies(ReplyList& out, bool safe_only, std::uint16_t first,
                           int near_only) const {
  out.count = 1;
  out.code[0] = 0;
  for (int k = 0; k < num_active_; ++k) {
    const int seat = active_[k];
    if (!s_.alive(seat)) continue;
    std::array<int, kMoves> order{};
    int n = order_replies(order, seat, safe_only);
    if (near_only > 0 && head_distance(seat) > 2 * near_only) n = 1;
    const int before = out.count;
    for (int j = n - 1; j >= 0; --j) {
      for (int i = 0; i < before; ++i) {
        out.code[j * before + i] = static_cast<std::uint16_t>(out.code[i] | order[j] << (2 * k));
      }
    }
    out.count = before * n;
  }
  bring_forward(out.code.begin(), out.code.begin() + out.count, first);
}

template <class T>
void Tree<T>::list_best_replies(ReplyList& out, std::uint16_t first, int near_only) const {
  out.count = 1;
  out.code[0] = 0;
  std::array<std::array<int, kMoves>, 4> order{};
  std::array<int, 4> n{};
  for (int k = 0; k < num_active_; ++k) {
    if (!s_.alive(active_[k])) continue;
    n[k] = order_replies(order[k], active_[k], true);
    if (head_distance(active_[k]) > 2 * near_only) n[k] = 1;
    out.code[0] = static_cast<std::uint16_t>(out.code[0] | order[k][0] << (2 * k));
  }
  for (int k = 0; k < num_active_; ++k) {
    const auto others = static_cast<std::uint16_t>(out.code[0] & ~(3U << (2 * k)));
    for (int j = 1; j < n[k]; ++j)
      out.code[out.count++] = static_cast<std::uint16_t>(others | order[k][j] << (2 * k));
  }
  bring_forward(out.code.begin(), out.code.begin() + out.count, first);
}

template <class T>
void Tree<T>::credit(std::uint16_t reply, int depth) {
  for (int k = 0; k < num_active_; ++k) {
    if (s_.alive(active_[k]))
      heuristics_.history[1][s_.head(active_[k])][(reply >> (2 * k)) & 3] += depth * depth;
  }
}

// A reply after the first: shown not to be worse for us by a null window, or searched in full.
template <class T>
int Tree<T>::next_reply(int depth, int alpha, int worst, int ply) {
  if (limits_.selective && depth >= kReduceFrom && worst - alpha == 1) {
    const int v = max_node(depth - 1, worst - 1, worst, ply);
    if (v >= worst || stopped_) return v;
  }
  if (worst - alpha > 1) {
    const int v = max_node(depth, worst - 1, worst, ply);
    if (v >= worst || v <= alpha || stopped_) return v;
  }
  return max_node(depth, alpha, worst, ply);
}

template <class T>
bool Tree<T>::taken(std::uint64_t h, int depth) {
  if (team_ == nullptr || depth < kShareFrom) return false;
  if (team_->busy(h)) return true;
  team_->enter(h);
  return false;
}

template <class T>
int Tree<T>::min_node(int move, int depth, int alpha, int beta, int ply,
                      std::uint16_t& refutation) {
  ReplyList replies;
  auto& usual = heuristics_.reply[place() * kMoves + move];
  if (refutation == kNoReply)
    refutation = static_cast<std::uint16_t>(heuristics_.recall(usual, kNoReply));
  if (best_reply_) {
    list_best_replies(replies, refutation, depth);
  } else {
    list_replies(replies, true, refutation, far_pruning_ ? depth : 0);
  }
  const int known = replies.count;
  const auto k =
      team_ == nullptr ? 0 : key(kReplySalt + static_cast<std::uint64_t>(move * 128 + depth));
  int worst = kWinScore;
  for (int i = 0; i < replies.count; ++i) {
    const auto h = k + replies.code[i] * kSpread;
    if (i > 0 && i < known && taken(h, depth)) {
      replies.code[replies.count++] = replies.code[i];
      continue;
    }
    make(move, replies.code[i], ply);
    const int v = i == 0 ? max_node(depth - 1, alpha, beta, ply + 1)
                         : next_reply(depth - 1, alpha, std::min(beta, worst), ply + 1);
    unmake(ply);
    done(h, depth);
    if (stopped_) return worst;
    if (v < worst) {
      worst = v;
      refutation = replies.code[i];
    }
    if (worst <= alpha) {
      credit(refutation, depth);
      heuristics_.keep(usual, refutation);
      break;
    }
  }
  return worst;
}

// A move after the first: shown not to be better by a null window, at first less deep, or searched
// in full.
template <class T>
int Tree<T>::next_move(int move, int depth, int alpha, int beta, int ply,
                       std::uint16_t& refutation) {
  if (limits_.selective && depth >= kReduceFrom) {
    const int v = min_node(move, depth - 1, alpha, alpha + 1, ply, refutation);
    if (v <= alpha || stopped_) return v;
  }
  if (beta - alpha > 1) {
    const int v = min_node(move, depth, alpha, alpha + 1, ply, refutation);
    if (v <= alpha || v >= beta || stopped_) return v;
  }
  return min_node(move, depth, alpha, beta, ply, refutation);
}

// What an undecided position is worth; never what a draw is, so that those are known by it.
template <class T>
int Tree<T>::open_value() const {
  const int v = evaluate(s_, us_, evaluation_);
  return v == limits_.draw_score ? v + 1 : v;
}

// The score of an earlier visit where it settles the window, else its move and reply.
template <class T>
std::optional<int> Tree<T>::recall(std::uint64_t k, int depth, int alpha, int beta, int ply,
                                   int& move, std::uint16_t& reply) const {
  Entry e;
  if (depth < kTableFrom || !table_.find(k, e)) return std::nullopt;
  const int score = from_table(e.score, ply);
  const bool deep_enough = e.depth >= depth || is_decided(score);
  const bool usable = e.bound == Bound::kExact || (e.bound == Bound::kLower && score >= beta) ||
                      (e.bound == Bound::kUpper && score <= alpha);
  if (deep_enough && usable) return score;
  move = e.move;
  reply = e.reply;
  return std::nullopt;
}

template <class T>
void Tree<T>::remember(std::uint64_t k, int depth, int ply, int score, Bound bound, int move,
                       std::uint16_t reply) {
  if (depth < kTableFrom) return;
  Entry e;
  e.score = static_cast<std::int16_t>(to_table(score, ply));
  e.depth = static_cast<std::uint8_t>(depth);
  e.move = static_cast<std::uint8_t>(move);
  e.reply = reply;
  e.bound = bound;
  table_.store(k, e);
}

template <class T>
int Tree<T>::max_node(int depth, int alpha, int beta, int ply) {
  switch (outcome()) {
    case Outcome::kLoss:
      return ply - kWinScore;
    case Outcome::kWin:
      return kWinScore - ply;
    case Outcome::kDraw:
      return limits_.draw_score;
    case Outcome::kOpen:
      break;
  }
  if (out_of_time()) return alpha;
  if (depth <= 0 || ply >= kMaxDepth) return open_value();
  const auto k = key(0);
  if (depth >= kTableFrom) table_.prefetch(k);
  // While the memory answers: the order of moves, whatever the table says.
  std::array<int, 2 * kMoves> moves;  // with room for those that are put off
  const int n = order_moves(moves);
  auto& usual = heuristics_.move[place()];
  int tt_move = -1;
  std::uint16_t tt_reply = kNoReply;
  if (const auto known = recall(k, depth, alpha, beta, ply, tt_move, tt_reply)) return *known;
  bring_forward(moves.begin(), moves.begin() + n,
                tt_move >= 0 ? tt_move : heuristics_.recall(usual, -1));
  const int alpha_before = alpha;
  int best = -kWinScore;
  int best_move = moves[0];
  std::uint16_t best_reply = tt_reply;
  int count = n;
  for (int i = 0; i < count; ++i) {
    const auto h = k + static_cast<std::uint64_t>(moves[i] * 128 + depth + 1) * kSpread;
    if (i > 0 && i < n && taken(h, depth)) {
      moves[count++] = moves[i];
      continue;
    }
    std::uint16_t reply = moves[i] == tt_move ? tt_reply : kNoReply;
    const int v = i == 0 ? min_node(moves[i], depth, alpha, beta, ply, reply)
                         : next_move(moves[i], depth, alpha, beta, ply, reply);
    done(h, depth);
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
  heuristics_.keep(usual, best_move);
  remember(k, depth, ply, best,
           best >= beta ? Bound::kLower : (best > alpha_before ? Bound::kExact : Bound::kUpper),
           best_move, best_reply);
  return best;
}

template class Tree<Small>;
template class Tree<Large>;

}  // namespace snakekit
