#include "plans.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "../players.h"
#include "../rng.h"
#include "../rules.h"

namespace snakekit {

namespace {

// What a seat really does when its plan says `wanted`.
template <class T>
std::int8_t carried_out(const State<T>& s, int seat, std::int8_t wanted, bool reflexes) {
  if (wanted != kReflex && (!reflexes || ((candidate_mask(s, seat) >> wanted) & 1) != 0))
    return wanted;
  return static_cast<std::int8_t>(reflex_move(s, seat));
}

double unit(Rng& rng) { return static_cast<double>(rng.next() >> 11) * 0x1p-53; }

// A move of `mask` with probability proportional to exp(logit).
int drawn(const float* logits, int mask, Rng& rng) {
  float most = -INFINITY;
  for (int m = 0; m < kMoves; ++m) {
    if ((mask >> m) & 1) most = std::max(most, logits[m]);
  }
  std::array<double, kMoves> weight{};
  double total = 0;
  for (int m = 0; m < kMoves; ++m) {
    if ((mask >> m) & 1) total += weight[m] = std::exp(static_cast<double>(logits[m] - most));
  }
  double x = unit(rng) * total;
  int last = kUp;
  for (int m = 0; m < kMoves; ++m) {
    if (!(weight[m] > 0)) continue;
    last = m;
    x -= weight[m];
    if (x < 0) break;
  }
  return last;
}

std::int8_t any_of(int mask, Rng& rng) {
  int n = rng.below(std::popcount(static_cast<unsigned>(mask)));
  for (std::int8_t m = 0; m < kMoves; ++m) {
    if (((mask >> m) & 1) != 0 && n-- == 0) return m;
  }
  return kUp;
}

template <class T>
void complete(const State<T>& root, const Roster& roster, int slot, const std::int8_t* expected,
              std::int8_t* plan, int turns, Rng& rng) {
  State<T> s = root;
  s.rules.solo = true;  // the board goes on while the seat lives
  const int own = roster.seat[slot];
  for (int turn = 0; turn < turns; ++turn) {
    if (!s.alive(own)) {
      std::fill(plan + turn, plan + turns, kReflex);
      return;
    }
    const int mask = candidate_mask(s, own);
    if (plan[turn] == kReflex || ((mask >> plan[turn]) & 1) == 0) plan[turn] = any_of(mask, rng);
    Moves moves;
    moves.fill(kInvalidMove);
    for (int other = 0; other < roster.count; ++other) {
      const int seat = roster.seat[other];
      if (!s.alive(seat)) continue;
      const std::int8_t wanted = expected == nullptr ? kReflex : expected[(other * turns) + turn];
      moves[seat] = carried_out(s, seat, wanted, true);
    }
    moves[own] = plan[turn];
    step(s, moves);
  }
}

}  // namespace

void PlanLines::load(const Board& board, const std::int8_t* plans, int lines, int turns,
                     bool reflexes) {
  leaves_.reset(board);
  board.visit([&]<class T>(const State<T>& s) {
    check_players(s, leaves_.slots(), "board");
    const Roster roster = Roster::of(s);
    for (int line = 0; line < lines; ++line) {
      State<T> after = s;
      for (int turn = 0; turn < turns && !after.game_over(); ++turn) {
        Moves moves;
        moves.fill(kInvalidMove);
        for (int slot = 0; slot < roster.count; ++slot) {
          const int seat = roster.seat[slot];
          if (after.alive(seat))
            moves[seat] = carried_out(after, seat, plans[(slot * turns) + turn], reflexes);
        }
        step(after, moves);
      }
      leaves_.add(roster, after);
      plans += static_cast<std::ptrdiff_t>(roster.count) * turns;
    }
  });
}

PlanWalk::PlanWalk(const Board& board, int count, int turns, int slots)
    : root_(board), turns_(turns), slots_(slots), boards_(count, board) {
  board.visit([&](const auto& s) {
    check_players(s, slots, "board");
    roster_ = Roster::of(s);
  });
  plans_.assign(static_cast<std::size_t>(roster_.count) * count * turns, kReflex);
  find_open();
}

void PlanWalk::find_open() {
  going_.clear();
  if (turn_ == turns_) return;
  for (int i = 0; i < count(); ++i) {
    if (!boards_[i].visit([](const auto& s) { return s.game_over(); })) going_.push_back(i);
  }
}

void PlanWalk::encode(std::uint8_t* out) const {
  const int height = root_.height();
  const int width = root_.width();
  const auto size = static_cast<std::size_t>(v3_planes(slots_)) * height * width;
  for (const int i : going_) {
    boards_[i].visit([&](const auto& s) { encode_v3(s, slots_, {out, height, width}); });
    out += size;
  }
}

void PlanWalk::step(const float* logits, std::uint64_t seed) {
  Rng rng(seed);
  for (const int i : going_) {
    boards_[i].visit([&](auto& s) {
      const Roster living = Roster::of(s);
      Moves moves;
      moves.fill(kInvalidMove);
      for (int slot = 0; slot < living.count; ++slot) {
        const int seat = living.seat[slot];
        const auto* own = logits + static_cast<std::ptrdiff_t>(slot) * kMoves;
        moves[seat] = static_cast<std::int8_t>(drawn(own, candidate_mask(s, seat), rng));
        const auto* first = roster_.seat.data();
        const auto at = std::find(first, first + roster_.count, seat) - first;
        plans_[((at * count() + i) * turns_) + turn_] = moves[seat];
      }
      snakekit::step(s, moves);
    });
    logits += static_cast<std::ptrdiff_t>(slots_) * kMoves;
  }
  ++turn_;
  find_open();
}

void complete_plans(const Board& board, int slot, const std::int8_t* expected, std::int8_t* plans,
                    int count, int turns, std::uint64_t seed) {
  Rng rng(seed);
  board.visit([&](const auto& s) {
    const Roster roster = Roster::of(s);
    for (int i = 0; i < count; ++i, plans += turns)
      complete(s, roster, slot, expected, plans, turns, rng);
  });
}

}  // namespace snakekit
