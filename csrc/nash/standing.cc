#include "standing.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace snakekit {

namespace {

constexpr int kHopeUnit = 128;  // parts of a hope in the table

struct HopeTable {
  std::array<std::int16_t, 2 * kStandingEnd + 1> of;

  explicit HopeTable(double one) noexcept {
    for (int score = -kStandingEnd; score <= kStandingEnd; ++score) {
      const double hope =
          std::abs(score) == kStandingEnd ? std::copysign(1.0, score) : std::tanh(score / one);
      of[score + kStandingEnd] = static_cast<std::int16_t>(std::lround(hope * (127 * kHopeUnit)));
    }
  }
  [[nodiscard]] int operator()(int score) const { return of[score + kStandingEnd]; }
};

const HopeTable kWeighedHopes(kWeighedHope);
const HopeTable kLearnedHopes(kLearnedHope);

int rounded(int sum, int parts) { return (sum + (sum < 0 ? -parts : parts) / 2) / parts; }

// By slot of the roster.
struct Judgement {
  std::array<int, kMaxSlots> score{};
  std::array<int, kMaxSlots> hope{};  // in parts

  void set(int slot, int points, const HopeTable& hopes) {
    score[slot] = points;
    hope[slot] = hopes(points);
  }
};

template <class T>
void judge_learned(const State<T>& s, const Roster& roster, Judgement& out) {
  const Flood<T> flood(s);
  for (int slot = 0; slot < roster.count; ++slot) {
    const int i = roster.seat[slot];
    if (!s.alive(i)) continue;
    const int points = standing_value()(s, i, flood);
    out.set(slot, std::clamp(points, -kEvalMax, kEvalMax), kLearnedHopes);
  }
}

template <class T>
void judge_weighed(const State<T>& s, const Roster& roster, Judgement& out) {
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
    out.set(slot, weigh(s, t, kStandingWeights), kWeighedHopes);
  }
}

// For every living seat from one flood.
template <class T>
void judge_open(const State<T>& s, const Roster& roster, Judgement& out) {
  if (LearnedValue::knows(s)) return judge_learned(s, roster, out);
  judge_weighed(s, roster, out);
}

template <class T>
Judgement judge(const State<T>& s, const Roster& roster) {
  Judgement out;
  for (int slot = 0; slot < roster.count; ++slot) out.set(slot, -kStandingEnd, kWeighedHopes);
  if (!s.game_over()) {
    judge_open(s, roster, out);
    return out;
  }
  int last = 0;
  bool won = false;
  for (int slot = 0; slot < roster.count; ++slot) {
    const int i = roster.seat[slot];
    won = won || s.alive(i);
    last = std::max<int>(last, s.h.snake[i].out_turn);
  }
  for (int slot = 0; slot < roster.count; ++slot) {
    const int i = roster.seat[slot];
    if (s.alive(i)) out.set(slot, kStandingEnd, kWeighedHopes);
    if (!won && s.h.snake[i].out_turn == last) out.set(slot, kStandingDraw, kWeighedHopes);
  }
  return out;
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

template <class T>
void stand(const State<T>& s, const Roster& roster, std::array<Standing, kMaxSlots>& out) {
  Judgement now;
  judge_open(s, roster, now);
  Candidates has;
  const int joints = has.list(s, roster);
  const bool looks = joints != 0 && !s.game_over();
  std::array<std::array<int, kMoves>, kMaxSlots> hope{};
  for (int slot = 0; slot < roster.count; ++slot) {
    Standing& own = out[slot];
    own.now = now.score[slot];
    own.hope_now = rounded(now.hope[slot], kHopeUnit);
    own.worst.fill(-kStandingEnd);
    own.hope.fill(-127);
    for (int a = 0; a < has.count[slot]; ++a) {
      const auto m = static_cast<std::uint8_t>(has.move[slot][a]);
      own.worst[m] = static_cast<std::int16_t>(looks ? kStandingEnd : own.now);
      own.hope[m] = static_cast<std::int16_t>(own.hope_now);
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
    const Judgement then = judge(board, roster);
    unmake(board, undo);
    for (int slot = 0; slot < roster.count; ++slot) {
      const auto m = static_cast<std::uint8_t>(has.move[slot][at[slot]]);
      auto& worst = out[slot].worst[m];
      worst = std::min(worst, static_cast<std::int16_t>(then.score[slot]));
      hope[slot][m] += then.hope[slot];
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
