#include "standing.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace snakekit {

namespace {

constexpr int kHopeUnit = 128;  // parts of a hope in the table

struct HopeTable {
  std::array<std::int16_t, 2 * kStandingEnd + 1> of;

  HopeTable() noexcept {
    for (int score = -kStandingEnd; score <= kStandingEnd; ++score) {
      const double hope = std::abs(score) == kStandingEnd
                              ? std::copysign(1.0, score)
                              : std::tanh(static_cast<double>(score) / kStandingHope);
      of[score + kStandingEnd] = static_cast<std::int16_t>(std::lround(hope * (127 * kHopeUnit)));
    }
  }
};

const HopeTable kHope;

int rounded(int sum, int parts) { return (sum + (sum < 0 ? -parts : parts) / 2) / parts; }

using Scores = std::array<int, kMaxSlots>;

// The evaluation for every living seat from one flood; by slot of the roster.
template <class T>
void evaluate_all(const State<T>& s, const Roster& roster, Scores& out) {
  const Flood<T> flood(s);
  std::array<Terms, kMaxSlots> own;
  std::array<int, kTerms> total{};
  int living = 0;
  for (int slot = 0; slot < roster.count; ++slot) {
    const int i = roster.seat[slot];
    if (!s.alive(i)) continue;
    ++living;
    own[slot] = outlook(s, i, flood.of[i]);
    for (int k = 0; k < kTerms; ++k) total[k] += own[slot][k];
  }
  for (int slot = 0; slot < roster.count; ++slot) {
    const int i = roster.seat[slot];
    if (!s.alive(i)) continue;
    Terms t = own[slot];
    std::array<int, kTerms> theirs;
    for (int k = 0; k < kTerms; ++k) theirs[k] = total[k] - t[k];
    compare(s, i, living - 1, theirs, t);
    out[slot] = weigh(s, t, kStandingWeights);
  }
}

template <class T>
void judge(const State<T>& s, const Roster& roster, Scores& out) {
  out.fill(-kStandingEnd);
  if (!s.game_over()) return evaluate_all(s, roster, out);
  int last = 0;
  bool won = false;
  for (int slot = 0; slot < roster.count; ++slot) {
    const int i = roster.seat[slot];
    won = won || s.alive(i);
    last = std::max<int>(last, s.h.snake[i].out_turn);
  }
  for (int slot = 0; slot < roster.count; ++slot) {
    const int i = roster.seat[slot];
    if (s.alive(i)) out[slot] = kStandingEnd;
    if (!won && s.h.snake[i].out_turn == last) out[slot] = kStandingDraw;
  }
}

struct Candidates {
  std::array<int, kMaxSlots> count{};
  std::array<std::array<std::int8_t, kMoves>, kMaxSlots> move{};

  // Returns the number of joint moves, or 0 if there are too many.
  template <class T>
  int list(const State<T>& s, const Roster& roster) {
    int joints = 1;
    for (int slot = 0; slot < roster.count; ++slot) {
      for (int mask = candidate_mask(s, roster.seat[slot]); mask != 0; mask &= mask - 1)
        move[slot][count[slot]++] = static_cast<std::int8_t>(std::countr_zero(unsigned(mask)));
      joints *= count[slot];
    }
    return joints <= kMostJoints ? joints : 0;
  }
};

}  // namespace

int hope_of(int score) { return rounded(kHope.of[score + kStandingEnd], kHopeUnit); }

template <class T>
void stand(const State<T>& s, const Roster& roster, std::array<Standing, kMaxSlots>& out) {
  Scores score{};
  evaluate_all(s, roster, score);
  Candidates has;
  const int joints = has.list(s, roster);
  const bool looks = joints != 0 && !s.game_over();
  std::array<std::array<int, kMoves>, kMaxSlots> hope{};
  for (int slot = 0; slot < roster.count; ++slot) {
    Standing& own = out[slot];
    own.now = score[slot];
    own.worst.fill(-kStandingEnd);
    own.hope.fill(-127);
    for (int a = 0; a < has.count[slot]; ++a) {
      const auto m = static_cast<std::uint8_t>(has.move[slot][a]);
      own.worst[m] = static_cast<std::int16_t>(looks ? kStandingEnd : own.now);
      own.hope[m] = static_cast<std::int16_t>(hope_of(own.now));
    }
  }
  if (!looks) return;
  State<T> board = s;
  Undo<T> undo;
  std::array<int, kMaxSlots> at{};
  for (int joint = 0; joint < joints; ++joint) {
    Moves moves;
    moves.fill(kInvalidMove);
    for (int slot = 0; slot < roster.count; ++slot)
      moves[roster.seat[slot]] = has.move[slot][at[slot]];
    step(board, moves, &undo);
    judge(board, roster, score);
    unmake(board, undo);
    for (int slot = 0; slot < roster.count; ++slot) {
      const auto m = static_cast<std::uint8_t>(has.move[slot][at[slot]]);
      auto& worst = out[slot].worst[m];
      worst = std::min(worst, static_cast<std::int16_t>(score[slot]));
      hope[slot][m] += kHope.of[score[slot] + kStandingEnd];
    }
    for (int slot = roster.count - 1; slot >= 0; --slot) {
      if (++at[slot] < has.count[slot]) break;
      at[slot] = 0;
    }
  }
  for (int slot = 0; slot < roster.count; ++slot) {
    const int replies = joints / has.count[slot];
    for (int a = 0; a < has.count[slot]; ++a) {
      const auto m = static_cast<std::uint8_t>(has.move[slot][a]);
      out[slot].hope[m] = static_cast<std::int16_t>(rounded(hope[slot][m], replies * kHopeUnit));
    }
  }
}

template void stand(const State<Small>&, const Roster&, std::array<Standing, kMaxSlots>&);
template void stand(const State<Large>&, const Roster&, std::array<Standing, kMaxSlots>&);

}  // namespace snakekit
