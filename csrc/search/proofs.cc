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

}  // namespace

template <class T>
bool Tree<T>::give_up() {
  if (!proof_aborted_) proof_aborted_ = out_of_time() || nodes_ >= proof_limit_;
  return proof_aborted_;
}

// A proof at one depth stands at every greater one, a failure at every smaller one.
template <class T>
bool Tree<T>::proof_known(std::uint64_t k, int depth, bool& result) const {
  const Entry* e = table_.find(k);
  if (e == nullptr) return false;
  if (e->bound == Bound::kExact && e->depth <= depth) {
    result = true;
    return true;
  }
  if (e->bound == Bound::kUpper && e->depth >= depth) {
    result = false;
    return true;
  }
  return false;
}

template <class T>
void Tree<T>::proof_store(std::uint64_t k, int depth, bool result) {
  if (proof_aborted_) return;
  Entry e;
  e.key = k;
  e.depth = static_cast<std::uint8_t>(depth);
  e.bound = result ? Bound::kExact : Bound::kUpper;
  table_.store(e);
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
  bool result = false;
  if (proof_known(k, depth, result)) return result;
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
  bool result = false;
  if (proof_known(k, depth, result)) return result;
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

template <class T>
void Tree<T>::prove(int depth, SearchResult& r) {
  for (int i = 0; i < root_count_; ++i) {
    const int m = root_order_[i];
    if (r.label[m] != Label::kNone || !is_decided(r.score[m])) continue;
    proof_aborted_ = false;
    const bool win = r.score[m] > 0;
    // The smallest depth that proves it is the distance.
    for (int d = 1; d <= depth && !proof_aborted_; ++d) {
      const bool proved = win ? all_replies_win(m, d) : all_replies_lose(m, d);
      if (!proved || proof_aborted_) continue;
      r.label[m] = win ? Label::kWin : Label::kLoss;
      r.distance[m] = d;
      break;
    }
  }
  proof_aborted_ = false;
}

template <class T>
void Tree<T>::label_article(SearchResult& r) const {
  for (int i = 0; i < root_count_; ++i) {
    const int m = root_order_[i];
    if (!is_decided(r.score[m])) continue;
    r.label[m] = r.score[m] > 0 ? Label::kWin : Label::kLoss;
    r.distance[m] = kWinScore - std::abs(r.score[m]);
  }
}

#define SNAKEKIT_PROOFS(T)                                             \
  template bool Tree<T>::give_up();                                    \
  template bool Tree<T>::proof_known(std::uint64_t, int, bool&) const; \
  template void Tree<T>::proof_store(std::uint64_t, int, bool);        \
  template bool Tree<T>::proved_loss(int, int);                        \
  template bool Tree<T>::proved_win(int, int);                         \
  template bool Tree<T>::all_replies_lose(int, int);                   \
  template bool Tree<T>::all_replies_win(int, int);                    \
  template void Tree<T>::prove(int, SearchResult&);                    \
  template void Tree<T>::label_article(SearchResult&) const

SNAKEKIT_PROOFS(Small);
SNAKEKIT_PROOFS(Large);

}  // namespace snakekit
