// max^n (Luckhardt, Irani 1986) over a few turns: every snake looks for its own good instead of our
// harm. Asked where the paranoid search sees nothing but losses, which says that the others could
// kill us together, not that they will.
#include "tree.h"

namespace snakekit {

namespace {

constexpr int kMaxnTurns = 2;

}  // namespace

// What a position is worth to every seat.
template <class T>
void Tree<T>::worths(Worths& out, int ply) const {
  for (int i = 0; i < s_.seats; ++i) {
    if (!s_.alive(i)) {
      out[i] = s_.living() > 0 ? ply - kWinScore : limits_.draw_score;
    } else {
      out[i] = s_.living() == 1 ? kWinScore - ply : evaluate(s_, i, evaluation_);
    }
  }
}

// The seats choose one after the other, each knowing the choices before; then the turn is played.
template <class T>
void Tree<T>::max_n(int turns, int index, std::uint16_t reply, int move, int ply, Worths& out) {
  if (index == num_active_) {
    make(move, reply, ply);
    if (turns == 1 || stopped_ || s_.game_over() || !s_.alive(us_)) {
      worths(out, ply + 1);
    } else {
      best_move_n(turns - 1, ply + 1, out);
    }
    unmake(ply);
    return;
  }
  const int seat = active_[index];
  if (!s_.alive(seat)) return max_n(turns, index + 1, reply, move, ply, out);
  int mask = safe_mask(s_, seat);
  if (mask == 0) mask = (1 << kMoves) - 1;
  bool first = true;
  for (int m = 0; m < kMoves; ++m) {
    if (((mask >> m) & 1) == 0 || out_of_time()) continue;
    Worths w{};
    max_n(turns, index + 1, static_cast<std::uint16_t>(reply | m << (2 * index)), move, ply, w);
    if (first || w[seat] > out[seat]) out = w;
    first = false;
  }
}

template <class T>
int Tree<T>::best_move_n(int turns, int ply, Worths& out) {
  std::array<int, 2 * kMoves> moves;
  const int n = order_moves(moves);
  int best = moves[0];
  for (int i = 0; i < n; ++i) {
    Worths w{};
    max_n(turns, 0, 0, moves[i], ply, w);
    if (stopped_) break;
    if (i > 0 && w[us_] <= out[us_]) continue;
    out = w;
    best = moves[i];
  }
  return best;
}

template <class T>
bool Tree<T>::sees_only_losses() const {
  return num_active_ > 1 &&
         std::all_of(root_.begin(), root_.begin() + root_count_,
                     [](const RootMove& r) { return is_loss(r.score) || r.label == Label::kLoss; });
}

// The move that max^n likes best among those not proved to lose. One turn is always looked at,
// which takes some ten microseconds; the second one counts only if there was time for all of it.
template <class T>
int Tree<T>::choose_max_n(int otherwise) {
  int chosen = otherwise;
  stopped_ = false;
  for (int turns = 1; turns <= kMaxnTurns; ++turns) {
    may_stop_ = turns > 1;
    int best = chosen;
    int most = -kWinScore - 1;
    for (int i = 0; i < root_count_; ++i) {
      if (root_[i].label == Label::kLoss) continue;
      Worths w{};
      max_n(turns, 0, 0, root_[i].move, 0, w);
      if (stopped_) return chosen;
      if (w[us_] <= most) continue;
      most = w[us_];
      best = root_[i].move;
    }
    chosen = best;
  }
  return chosen;
}

#define SNAKEKIT_MAXN(T)                                                    \
  template void Tree<T>::worths(Worths&, int) const;                        \
  template void Tree<T>::max_n(int, int, std::uint16_t, int, int, Worths&); \
  template int Tree<T>::best_move_n(int, int, Worths&);                     \
  template bool Tree<T>::sees_only_losses() const;                          \
  template int Tree<T>::choose_max_n(int)

SNAKEKIT_MAXN(Small);
SNAKEKIT_MAXN(Large);

}  // namespace snakekit
