// The root: iterations, the order of moves, proofs of each, and the end of the search.
#include "tree.h"

namespace snakekit {

namespace {

constexpr int kAllMoves = (1 << kMoves) - 1;
constexpr double kFirstMove = 0.5;     // of an iteration's cost: the best move comes first
constexpr double kBeforeMixing = 0.5;  // share of the limits
constexpr double kMixingGain = 0.2;    // of utility, for which a mixture's risk is taken
constexpr int kAspiration = 100;       // half the window around the last iteration's score

}  // namespace

template <class T>
void Tree<T>::list_root() {
  int mask = legal_mask(s_, us_);
  if (mask == 0) mask = kAllMoves;
  safe_root_ = safe_mask(s_, us_);
  for (int m = 0; m < kMoves; ++m) {
    if ((mask >> m) & 1) root_[root_count_++].move = m;
  }
  sort_few(root_.begin(), root_.begin() + root_count_, [&](const RootMove& a, const RootMove& b) {
    const int sa = (safe_root_ >> a.move) & 1;
    const int sb = (safe_root_ >> b.move) & 1;
    return sa != sb ? sa > sb : priors_[a.move] > priors_[b.move];
  });
}

// The best move of the last iteration, in a window around its score.
template <class T>
bool Tree<T>::search_first(int depth) {
  auto& r = root_[0];
  int low = -kWinScore;
  int high = kWinScore;
  if (depth > 2 && r.exact && !is_decided(r.score)) {
    low = r.score - kAspiration;
    high = r.score + kAspiration;
  }
  for (;;) {
    std::uint16_t reply = kNoReply;
    const int v = min_node(r.move, depth, low, high, 0, reply);
    if (stopped_) return false;
    if (v <= low && low > -kWinScore) {
      low = -kWinScore;
    } else if (v >= high && high < kWinScore) {
      high = kWinScore;
    } else {
      r.score = v;
      r.exact = true;
      return true;
    }
  }
}

template <class T>
bool Tree<T>::search_later(int index, int depth) {
  auto& r = root_[index];
  int best = root_[0].score;
  for (int i = 1; i < index; ++i) best = std::max(best, root_[i].score);
  std::uint16_t reply = kNoReply;
  int v = best;
  if (!exact_scores_) {
    v = min_node(r.move, depth, best, best + 1, 0, reply);
    if (stopped_) return false;
    r.exact = false;
  }
  if (v > best || exact_scores_) {
    const int floor = exact_scores_ ? -kWinScore : best;
    v = min_node(r.move, depth, floor, kWinScore, 0, reply);
    if (stopped_) return false;
    r.exact = v > floor || exact_scores_;
  }
  r.score = v;
  return true;
}

template <class T>
void Tree<T>::order_root(int count) {
  sort_few(root_.begin(), root_.begin() + count, [&](const RootMove& a, const RootMove& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.exact != b.exact) return a.exact;
    return priors_[a.move] > priors_[b.move];
  });
}

template <class T>
void Tree<T>::take_priors() {
  const auto packed = signals_.priors.load(std::memory_order_relaxed);
  if (packed == 0) return;
  for (int m = 0; m < kMoves; ++m)
    priors_[m] = static_cast<float>((packed >> (16 * m)) & 0xffff) / 65535;
}

// False if time ran out; what was found by then is kept if it is a better move.
template <class T>
bool Tree<T>::search_root(int depth) {
  if (!search_first(depth)) return false;
  int found = 1;
  while (found < root_count_ && search_later(found, depth)) ++found;
  order_root(found);
  return found == root_count_;
}

template <class T>
std::optional<Stop> Tree<T>::settled() const {
  bool all_lost = true;
  bool all_known = true;
  for (int i = 0; i < root_count_; ++i) {
    const auto& r = root_[i];
    if (r.label == Label::kWin) return Stop::kProved;
    all_lost &= r.label == Label::kLoss;
    // A pessimistic loss that is not proved yet may be told from a proved one by looking deeper.
    all_known &=
        r.label != Label::kNone ||
        (r.exact && (r.score == limits_.draw_score || (!can_prove() && is_decided(r.score))));
  }
  if (all_lost) return Stop::kProved;
  return all_known ? std::optional(Stop::kDepth) : std::nullopt;
}

template <class T>
Stop Tree<T>::hard_stop() const {
  if (cancelled()) return Stop::kCancelled;
  return budget_.out_of_nodes(nodes_) ? Stop::kNodes : Stop::kTime;
}

template <class T>
std::optional<Stop> Tree<T>::after_iteration(int depth, std::int64_t nodes_before, int best) {
  budget_.iterated(nodes_, root_[0].move != best);
  if (limits_.proof == Proof::kArticle) {
    label_article();
  } else if (can_prove()) {
    prove(depth, nodes_ - nodes_before);
  }
  if (const auto end = settled()) return end;
  if (std::popcount(static_cast<unsigned>(safe_root_)) == 1 && budget_.limited())
    return Stop::kSingle;
  if (stopped_ || cancelled() || budget_.late() || budget_.out_of_nodes(nodes_)) return hard_stop();
  if (limits_.early_stop && budget_.enough(nodes_, kFirstMove)) return Stop::kEnough;
  return std::nullopt;
}

template <class T>
SearchResult Tree<T>::run() {
  SearchResult r;
  list_root();
  const bool mixing = has_mixed_turns();
  if (mixing) budget_.allow(kBeforeMixing);
  r.stopped = Stop::kDepth;
  for (int depth = 1; depth <= std::min(limits_.max_depth, kMaxDepth - 1); ++depth) {
    take_priors();
    const auto nodes_before = nodes_;
    const int best = root_[0].move;
    if (!search_root(depth)) {
      r.stopped = hard_stop();
      break;
    }
    r.depth = depth;
    may_stop_ = true;
    if (const auto end = after_iteration(depth, nodes_before, best)) {
      r.stopped = *end;
      break;
    }
  }
  r.best = choose();
  report(r);
  if (limits_.max_n && r.stopped != Stop::kProved && sees_only_losses())
    r.best = choose_max_n(r.best);
  if (mixing && r.stopped != Stop::kProved && r.stopped != Stop::kSingle) {
    solve_root(r);
    r.best = choose_mixed(r);
  }
  principal_variation(r);
  r.nodes = nodes_;
  r.seconds = budget_.seconds();
  return r;
}

template <class T>
std::int64_t Tree<T>::help() {
  list_root();
  may_stop_ = true;
  for (int depth = 1; depth <= std::min(limits_.max_depth, kMaxDepth - 1); ++depth) {
    take_priors();
    if (!search_root(depth)) break;
  }
  return nodes_;
}

template <class T>
int Tree<T>::choose() const {
  const auto rank = [](const RootMove& r) {
    return r.label == Label::kWin ? 2 : (r.label == Label::kLoss ? 0 : 1);
  };
  const auto better = [&](const RootMove& a, const RootMove& b) {
    if (rank(a) != rank(b)) return rank(a) > rank(b);
    if (rank(a) == 2 && a.distance != b.distance) return a.distance < b.distance;
    if (rank(a) == 0 && a.distance != b.distance) return a.distance > b.distance;
    return a.score > b.score;
  };
  return std::min_element(root_.begin(), root_.begin() + root_count_, better)->move;
}

// A move of the mixture, the likeliest or one drawn from it, unless a proof says otherwise.
template <class T>
int Tree<T>::choose_mixed(const SearchResult& r) const {
  if (r.label[r.best] == Label::kWin) return r.best;
  // A move that is nearly as good even if the opponent sees it needs no luck.
  const int seen = r.score[r.best];
  if (!is_loss(seen) && r.value < utility_of(seen) + kMixingGain) return r.best;
  double total = 0;
  int likeliest = -1;
  for (int m = 0; m < kMoves; ++m) {
    if (r.label[m] == Label::kLoss || r.mixture[m] <= 0) continue;
    total += r.mixture[m];
    if (likeliest < 0 || r.mixture[m] > r.mixture[likeliest]) likeliest = m;
  }
  if (likeliest < 0) return r.best;
  if (!limits_.sample) return likeliest;
  double left = total * static_cast<double>(mix64(*limits_.sample) >> 11) * 0x1p-53;
  for (int m = 0; m < kMoves; ++m) {
    if (r.label[m] == Label::kLoss || r.mixture[m] <= 0) continue;
    if (left < r.mixture[m]) return m;
    left -= r.mixture[m];
  }
  return likeliest;
}

template <class T>
void Tree<T>::report(SearchResult& r) const {
  for (int i = 0; i < root_count_; ++i) {
    const auto& found = root_[i];
    r.searched[found.move] = true;
    r.score[found.move] = found.score;
    r.exact[found.move] = found.exact;
    r.label[found.move] = found.label;
    r.distance[found.move] = found.distance;
  }
}

template <class T>
void Tree<T>::principal_variation(SearchResult& r) {
  r.line[0] = static_cast<std::int8_t>(r.best);
  int ply = 0;
  std::uint16_t reply = kNoReply;
  // The table holds the answer to our move only one turn later, so the first reply is searched
  // again at the cheapest depth.
  may_stop_ = false;
  stopped_ = false;
  min_node(r.best, 1, -kWinScore, kWinScore, 0, reply);
  make(r.best, reply, ply++);
  Entry e;
  while (ply < r.depth && outcome() == Outcome::kOpen && table_.find(key(0), e) && e.depth > 0) {
    r.line[ply] = static_cast<std::int8_t>(e.move);
    make(e.move, e.reply, ply++);
  }
  r.line_length = ply;
  while (ply > 0) unmake(--ply);
}

#define SNAKEKIT_ROOT(T)                                                         \
  template void Tree<T>::list_root();                                            \
  template bool Tree<T>::search_root(int);                                       \
  template bool Tree<T>::search_first(int);                                      \
  template bool Tree<T>::search_later(int, int);                                 \
  template void Tree<T>::order_root(int);                                        \
  template void Tree<T>::take_priors();                                          \
  template std::optional<Stop> Tree<T>::settled() const;                         \
  template std::optional<Stop> Tree<T>::after_iteration(int, std::int64_t, int); \
  template Stop Tree<T>::hard_stop() const;                                      \
  template SearchResult Tree<T>::run();                                          \
  template std::int64_t Tree<T>::help();                                         \
  template int Tree<T>::choose() const;                                          \
  template int Tree<T>::choose_mixed(const SearchResult&) const;                 \
  template void Tree<T>::report(SearchResult&) const;                            \
  template void Tree<T>::principal_variation(SearchResult&)

SNAKEKIT_ROOT(Small);
SNAKEKIT_ROOT(Large);

}  // namespace snakekit
