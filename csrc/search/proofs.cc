// Proofs that hold in the simultaneous game, not only in the order that alpha-beta assumes.
//
// Loss: the others commit first and we answer, move after move; if even then every line ends with
// us dead while somebody lives, we are lost however both sides mix. Win: we commit first and every
// joint answer ends with us alone. Both walk all moves of the side that must have no way out.
#include "tree.h"

namespace snakekit {

namespace {

constexpr std::uint64_t kLossSalt = 0x10551055deadbeefULL;
constexpr std::uint64_t kWinSalt = 0x3115311500c0ffeeULL;
constexpr int kAllMoves = (1 << kMoves) - 1;
constexpr std::int64_t kLeastHinted = 4000;
constexpr std::int64_t kLeastUnhinted = 1000;
constexpr int kUnhintedShare = 4;  // of an iteration's nodes

}  // namespace

template <class T>
bool Tree<T>::give_up() {
  if (!proof_aborted_) proof_aborted_ = out_of_time() || nodes_ >= proof_limit_;
  return proof_aborted_;
}

// A proof at one depth stands at every greater one, a failure at every smaller one.
template <class T>
std::optional<bool> Tree<T>::proof_known(std::uint64_t k, int depth) const {
  Entry e;
  if (!table_.find(k, e)) return std::nullopt;
  if (e.bound == Bound::kExact && e.depth <= depth) return true;
  if (e.bound == Bound::kUpper && e.depth >= depth) return false;
  return std::nullopt;
}

template <class T>
void Tree<T>::proof_store(std::uint64_t k, int depth, bool result) {
  if (proof_aborted_) return;
  Entry e;
  e.depth = static_cast<std::uint8_t>(depth);
  e.bound = result ? Bound::kExact : Bound::kUpper;
  table_.store(k, e);
}

template <class T>
bool Tree<T>::every_move_loses(std::uint16_t reply, int depth, int ply) {
  const int safe = safe_mask(s_, us_);
  for (const int mask : {safe, kAllMoves & ~safe}) {
    for (int m = 0; m < kMoves; ++m) {
      if (((mask >> m) & 1) == 0) continue;
      if (give_up()) return false;
      make(m, reply, ply);
      const Outcome o = outcome();
      const bool lost =
          o == Outcome::kLoss || (o == Outcome::kOpen && proved_loss(depth - 1, ply + 1));
      unmake(ply);
      if (!lost) return false;
    }
  }
  return true;
}

template <class T>
bool Tree<T>::proved_loss(int depth, int ply) {
  if (depth <= 0 || ply >= kMaxDepth || give_up()) return false;
  const auto k = key(kLossSalt);
  if (const auto known = proof_known(k, depth)) return *known;
  bool result = false;
  ReplyList replies;
  // Leaving out replies can only make a loss harder to prove.
  list_replies(replies, true, 0);
  for (int i = 0; i < replies.count && !result; ++i)
    result = every_move_loses(replies.code[i], depth, ply);
  proof_store(k, depth, result);
  return result;
}

template <class T>
bool Tree<T>::every_reply_wins(int move, int depth, int ply) {
  ReplyList replies;
  list_replies(replies, false, 0);
  for (int i = 0; i < replies.count; ++i) {
    if (give_up()) return false;
    make(move, replies.code[i], ply);
    const Outcome o = outcome();
    const bool won = o == Outcome::kWin || (o == Outcome::kOpen && proved_win(depth - 1, ply + 1));
    unmake(ply);
    if (!won) return false;
  }
  return true;
}

template <class T>
bool Tree<T>::proved_win(int depth, int ply) {
  if (depth <= 0 || ply >= kMaxDepth || give_up()) return false;
  const auto k = key(kWinSalt);
  if (const auto known = proof_known(k, depth)) return *known;
  bool result = false;
  const int safe = safe_mask(s_, us_);
  for (int m = 0; m < kMoves && !result; ++m) {
    if ((safe >> m) & 1) result = every_reply_wins(m, depth, ply);
  }
  proof_store(k, depth, result);
  return result;
}

// Root: our first move is fixed, and the others answer it with anything that is not suicide.
template <class T>
bool Tree<T>::all_replies_lose(int move, int depth) {
  ReplyList replies;
  list_replies(replies, true, 0);
  for (int i = 0; i < replies.count; ++i) {
    if (give_up()) return false;
    make(move, replies.code[i], 0);
    const Outcome o = outcome();
    const bool lost = o == Outcome::kLoss || (o == Outcome::kOpen && proved_loss(depth - 1, 1));
    unmake(0);
    if (!lost) return false;
  }
  return true;
}

template <class T>
bool Tree<T>::all_replies_win(int move, int depth) {
  return every_reply_wins(move, depth, 0);
}

// The smallest depth that proves it is the distance.
template <class T>
void Tree<T>::prove_move(RootMove& r, int depth, bool win) {
  int& failed = win ? r.no_win : r.no_loss;
  proof_aborted_ = false;
  for (int d = failed + 1; d <= depth; ++d) {
    const bool proved = win ? all_replies_win(r.move, d) : all_replies_lose(r.move, d);
    if (proof_aborted_) return;
    if (proved) {
      r.label = win ? Label::kWin : Label::kLoss;
      r.distance = d;
      if (!r.exact) r.score = win ? kWinScore - d : d - kWinScore;
      return;
    }
    failed = d;
  }
}

// Decided scores hint at proofs, which may then cost as much again as the iteration. The others are
// tried more briefly: a bound hides what a worse move is, and late moves were not searched in full.
template <class T>
void Tree<T>::prove(int depth, std::int64_t iteration_nodes) {
  for (int i = 0; i < root_count_; ++i) {
    auto& r = root_[i];
    if (r.label != Label::kNone) continue;
    for (const bool win : {true, false}) {
      const bool hinted = win ? is_win(r.score) : is_loss(r.score);
      // Without reductions a score says what it may hide: no win above the best move's, and of
      // exact ones nothing.
      const bool possible = win ? is_win(root_[0].score) : !r.exact;
      if (!hinted && !possible && !limits_.selective && !best_reply_) continue;
      proof_limit_ = nodes_ + (hinted ? std::max(kLeastHinted, iteration_nodes)
                                      : std::max(kLeastUnhinted, iteration_nodes / kUnhintedShare));
      if (r.label == Label::kNone) prove_move(r, depth, win);
    }
  }
  proof_aborted_ = false;
}

template <class T>
void Tree<T>::label_article() {
  for (int i = 0; i < root_count_; ++i) {
    auto& r = root_[i];
    if (!is_decided(r.score)) continue;
    r.label = is_win(r.score) ? Label::kWin : Label::kLoss;
    r.distance = kWinScore - std::abs(r.score);
  }
}

#define SNAKEKIT_PROOFS(T)                                                     \
  template bool Tree<T>::give_up();                                            \
  template std::optional<bool> Tree<T>::proof_known(std::uint64_t, int) const; \
  template void Tree<T>::proof_store(std::uint64_t, int, bool);                \
  template bool Tree<T>::proved_loss(int, int);                                \
  template bool Tree<T>::proved_win(int, int);                                 \
  template bool Tree<T>::all_replies_lose(int, int);                           \
  template bool Tree<T>::all_replies_win(int, int);                            \
  template void Tree<T>::prove(int, std::int64_t);                             \
  template void Tree<T>::prove_move(RootMove&, int, bool);                     \
  template void Tree<T>::label_article()

SNAKEKIT_PROOFS(Small);
SNAKEKIT_PROOFS(Large);

}  // namespace snakekit
