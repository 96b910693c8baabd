// Duels solved as what they are, turns of simultaneous moves, for the first few turns: each turn is
// a matrix game whose value may need mixed strategies (Bosansky, Lisy, Lanctot, Cermak, Winands:
// Algorithms for computing strategies in two-player simultaneous move games, Artificial
// Intelligence 237, 2016; their double oracle with serialized alpha-beta bounds).
#include <cmath>

#include "../nash/regret.h"
#include "tree.h"

namespace snakekit {

namespace {

constexpr double kTolerance = 1e-9;
constexpr double kMostOpen = 0.9;   // utility that no undecided position reaches
constexpr double kOpenScale = 600;  // score at which it is tanh(1) of that
constexpr double kPerTurn = 1e-4;   // sooner wins, later losses

}  // namespace

double utility_of(int score) {
  if (is_win(score)) return 1 - kPerTurn * (kWinScore - score);
  if (is_loss(score)) return kPerTurn * (score + kWinScore) - 1;
  return kMostOpen * std::tanh(score / kOpenScale);
}

// One turn: our moves are the rows, the opponent's the columns.
struct StageGame {
  std::array<int, kMoves> move{};
  std::array<std::uint16_t, kMoves> reply{};
  int rows = 0;
  int cols = 0;
  // What is known of the game after each pair of moves.
  std::array<std::array<double, kMoves>, kMoves> low{};
  std::array<std::array<double, kMoves>, kMoves> high{};
};

// The rows and columns that have proved useful so far, and the equilibrium among them.
struct Oracle {
  std::array<int, kMoves> rows{};
  std::array<int, kMoves> cols{};
  int num_rows = 0;
  int num_cols = 0;
  std::array<double, kMoves> row_mix{};
  std::array<double, kMoves> col_mix{};
  double value = 0;

  static bool add(std::array<int, kMoves>& list, int& n, int x) {
    if (std::find(list.begin(), list.begin() + n, x) != list.begin() + n) return false;
    list[n++] = x;
    return true;
  }
  void solve(const StageGame& g, std::vector<double>& room) {
    std::array<double, kMoves * kMoves> matrix;
    for (int i = 0; i < num_rows; ++i) {
      for (int j = 0; j < num_cols; ++j) matrix[i * num_cols + j] = g.low[rows[i]][cols[j]];
    }
    value = solve_zero_sum(matrix.data(), num_rows, num_cols, row_mix.data(), col_mix.data(), room);
  }
};

template <class T>
void Tree<T>::list_stage(StageGame& g) const {
  std::array<int, 2 * kMoves> moves;
  g.rows = order_moves(moves);
  std::copy_n(moves.begin(), g.rows, g.move.begin());
  ReplyList replies;
  list_replies(replies, true, kNoReply);
  g.cols = replies.count;
  std::copy_n(replies.code.begin(), g.cols, g.reply.begin());
}

template <class T>
double Tree<T>::leaf_utility(int ply) {
  return utility_of(max_node(leaf_depth_, -kWinScore, kWinScore, ply));
}

// Value when every turn is played in order: the others see our move, or we see theirs.
template <class T>
double Tree<T>::serialized(bool we_see, int turns, double alpha, double beta, int ply) {
  if (turns == 0 || outcome() != Outcome::kOpen) return leaf_utility(ply);
  StageGame g;
  list_stage(g);
  const int outer = we_see ? g.cols : g.rows;
  const int inner = we_see ? g.rows : g.cols;
  // Seen from the side that commits first; it maximizes if that is us.
  const double sign = we_see ? -1 : 1;
  double low = we_see ? -beta : alpha;
  const double high = we_see ? -alpha : beta;
  double best = -2;
  for (int a = 0; a < outer && best < high; ++a) {
    double worst = 2;
    for (int b = 0; b < inner && worst > low; ++b) {
      const int i = we_see ? b : a;
      const int j = we_see ? a : b;
      make(g.move[i], g.reply[j], ply);
      const double to = std::min(high, worst);
      const double v =
          sign * serialized(we_see, turns - 1, we_see ? -to : low, we_see ? -low : to, ply + 1);
      unmake(ply);
      if (stopped_) return 0;
      worst = std::min(worst, v);
    }
    best = std::max(best, worst);
    low = std::max(low, best);
  }
  return sign * best;
}

// Makes the bounds of one pair of moves meet.
template <class T>
void Tree<T>::settle_cell(StageGame& g, int i, int j, int turns, int ply) {
  if (g.high[i][j] - g.low[i][j] <= kTolerance || stopped_) return;
  make(g.move[i], g.reply[j], ply);
  g.low[i][j] = g.high[i][j] = exact_value(turns - 1, ply + 1, nullptr);
  unmake(ply);
}

template <class T>
void Tree<T>::bound_cells(StageGame& g, int turns, int ply) {
  for (int i = 0; i < g.rows; ++i) {
    for (int j = 0; j < g.cols && !stopped_; ++j) {
      make(g.move[i], g.reply[j], ply);
      g.low[i][j] = serialized(false, turns - 1, -2, 2, ply + 1);
      g.high[i][j] = turns == 1 ? g.low[i][j] : serialized(true, turns - 1, -2, 2, ply + 1);
      unmake(ply);
    }
  }
}

// Adds our best answer to their mix if it gains; cells are solved only where bounds leave a doubt.
template <class T>
bool Tree<T>::improve_rows(StageGame& g, Oracle& o, int turns, int ply) {
  int best = -1;
  double most = o.value + kTolerance;
  for (int i = 0; i < g.rows; ++i) {
    double hope = 0;
    for (int k = 0; k < o.num_cols; ++k) hope += o.col_mix[k] * g.high[i][o.cols[k]];
    if (hope <= most) continue;
    double sum = 0;
    for (int k = 0; k < o.num_cols; ++k) {
      if (o.col_mix[k] <= 0) continue;
      settle_cell(g, i, o.cols[k], turns, ply);
      sum += o.col_mix[k] * g.low[i][o.cols[k]];
    }
    if (sum <= most) continue;
    most = sum;
    best = i;
  }
  return best >= 0 && Oracle::add(o.rows, o.num_rows, best);
}

template <class T>
bool Tree<T>::improve_cols(StageGame& g, Oracle& o, int turns, int ply) {
  int best = -1;
  double least = o.value - kTolerance;
  for (int j = 0; j < g.cols; ++j) {
    double fear = 0;
    for (int k = 0; k < o.num_rows; ++k) fear += o.row_mix[k] * g.low[o.rows[k]][j];
    if (fear >= least) continue;
    double sum = 0;
    for (int k = 0; k < o.num_rows; ++k) {
      if (o.row_mix[k] <= 0) continue;
      settle_cell(g, o.rows[k], j, turns, ply);
      sum += o.row_mix[k] * g.low[o.rows[k]][j];
    }
    if (sum >= least) continue;
    least = sum;
    best = j;
  }
  return best >= 0 && Oracle::add(o.cols, o.num_cols, best);
}

// The value of the next `turns` turns with leaves worth their search; our strategy in `mixture`.
template <class T>
double Tree<T>::exact_value(int turns, int ply, std::array<double, kMoves>* mixture) {
  if (turns == 0 || outcome() != Outcome::kOpen) return leaf_utility(ply);
  StageGame g;
  list_stage(g);
  bound_cells(g, turns, ply);
  Oracle o;
  Oracle::add(o.rows, o.num_rows, 0);
  Oracle::add(o.cols, o.num_cols, 0);
  for (bool grew = true; grew && !stopped_;) {
    for (int i = 0; i < o.num_rows; ++i) {
      for (int j = 0; j < o.num_cols; ++j) settle_cell(g, o.rows[i], o.cols[j], turns, ply);
    }
    if (stopped_) return 0;
    o.solve(g, room_);
    grew = improve_rows(g, o, turns, ply);
    grew = improve_cols(g, o, turns, ply) || grew;
  }
  if (mixture != nullptr) {
    mixture->fill(0);
    for (int i = 0; i < o.num_rows; ++i) (*mixture)[g.move[o.rows[i]]] = o.row_mix[i];
  }
  return o.value;
}

template <class T>
bool Tree<T>::has_mixed_turns() const {
  if (limits_.mixing == Mixing::kOff || num_active_ != 1 || !complete_) return false;
  return limits_.mixing == Mixing::kAlways || head_distance(active_[0]) <= 2 * limits_.mixed_turns;
}

// Deeper and deeper searches at the leaves, as long as the limits allow.
template <class T>
void Tree<T>::solve_root(SearchResult& r) {
  const int turns = std::min(limits_.mixed_turns, r.depth);
  stopped_ = false;
  budget_.allow(1);
  budget_.begin_anew(nodes_);
  for (leaf_depth_ = 0; leaf_depth_ + turns <= r.depth; ++leaf_depth_) {
    std::array<double, kMoves> mixture{};
    may_stop_ = leaf_depth_ > 0;
    const double value = exact_value(turns, 0, &mixture);
    if (stopped_) break;
    const int before = choose_mixed(r);
    r.mixture = mixture;
    r.value = value;
    r.mixed_depth = leaf_depth_ + turns;
    budget_.iterated(nodes_, choose_mixed(r) != before);
    // Nothing is kept of a part of these.
    if (limits_.early_stop && budget_.enough(nodes_, 1)) break;
  }
}

#define SNAKEKIT_EXACT(T)                                                      \
  template void Tree<T>::list_stage(StageGame&) const;                         \
  template double Tree<T>::leaf_utility(int);                                  \
  template double Tree<T>::serialized(bool, int, double, double, int);         \
  template void Tree<T>::settle_cell(StageGame&, int, int, int, int);          \
  template void Tree<T>::bound_cells(StageGame&, int, int);                    \
  template bool Tree<T>::improve_rows(StageGame&, Oracle&, int, int);          \
  template bool Tree<T>::improve_cols(StageGame&, Oracle&, int, int);          \
  template double Tree<T>::exact_value(int, int, std::array<double, kMoves>*); \
  template bool Tree<T>::has_mixed_turns() const;                              \
  template void Tree<T>::solve_root(SearchResult&)

SNAKEKIT_EXACT(Small);
SNAKEKIT_EXACT(Large);

}  // namespace snakekit
