#include "encode_all.h"

#include <algorithm>
#include <cstring>

#include "../plane_writer.h"
#include "standing.h"

namespace snakekit {

namespace {

template <class T>
int lead(const State<T>& s, int own) {
  int longest = 0;
  for (int i = 0; i < s.seats; ++i) {
    if (i != own && s.alive(i)) longest = std::max<int>(longest, s.h.snake[i].length);
  }
  return std::clamp(kEvenLead + s.h.snake[own].length - longest, 0, 2 * kEvenLead);
}

// Plain loops over bytes, which compilers turn into vector instructions.
template <class T>
void slot_areas(const State<T>& s, const Arrivals<T>& arrivals, int own, int base,
                PlaneWriter<T>& w) {
  using Cells = std::array<std::uint8_t, T::kCells>;
  const int n = s.geo->cells;
  const Cells& mine = arrivals.turn[own];
  Cells longer;
  Cells shorter;
  longer.fill(kNever);
  shorter.fill(kNever);
  for (int i = 0; i < s.seats; ++i) {
    if (i == own || !s.alive(i)) continue;
    const auto& turn = arrivals.turn[i];
    auto& soonest = s.h.snake[i].length >= s.h.snake[own].length ? longer : shorter;
    for (int c = 0; c < n; ++c) soonest[c] = std::min(soonest[c], turn[c]);
  }
  const auto plot = [&](int plane, auto&& value) {
    Cells cells;
    for (int c = 0; c < n; ++c) cells[c] = static_cast<std::uint8_t>(value(c));
    w.copy(base + plane, cells.data());
  };
  const auto bit = [](bool b) { return static_cast<std::uint8_t>(b); };
  plot(kSlotArrival, [&](int c) {
    return mine[c] == kNever ? std::uint8_t{0}
                             : static_cast<std::uint8_t>(kMaxArrival + 1 - mine[c]);
  });
  plot(kSlotArea, [&](int c) {
    return bit(mine[c] < longer[c]) & bit(mine[c] <= shorter[c]) & bit(mine[c] != kNever);
  });
  plot(kSlotDanger, [&](int c) { return bit(mine[c] == 1) & bit(longer[c] == 1); });
  plot(kSlotChallenge,
       [&](int c) { return bit(mine[c] == 1) & bit(longer[c] != 1) & bit(shorter[c] == 1); });
}

constexpr int kZeroScore = 2048;
constexpr int kZeroHope = 128;

template <class T>
void slot_standing(const State<T>& s, const Standing& standing, int own, int base,
                   PlaneWriter<T>& w) {
  const auto plot = [&](int c, int score, int hope) {
    const int v = score + kZeroScore;
    auto& high = w.cell(base + kSlotWorst, c);
    auto& low = w.cell(base + kSlotWorstRest, c);
    // Across two cells of a wrapped board both ways lead to one cell.
    if (v > high * 256 + low) {
      high = static_cast<std::uint8_t>(v / 256);
      low = static_cast<std::uint8_t>(v % 256);
    }
    auto& mean = w.cell(base + kSlotHope, c);
    mean = std::max(mean, static_cast<std::uint8_t>(hope + kZeroHope));
  };
  const auto head = s.head(own);
  const int legal = legal_mask(s, own);
  for (int m = 0; m < kMoves; ++m) {
    const auto to = s.geo->next[head][m];
    if (((legal >> m) & 1) && to != head) plot(to, standing.worst[m], standing.hope[m]);
  }
  plot(head, standing.now, standing.hope_now);
}

}  // namespace

std::vector<float> v3_scale(int slots) {
  std::vector<float> scale{1, 1, 100, 100, 1, 1};
  const std::array<float, kV3Slot> slot{1, 32, 100, 32, kEvenLead, 64, 1, 1, 1, 8, 2048, 128};
  for (int s = 0; s < slots; ++s) scale.insert(scale.end(), slot.begin(), slot.end());
  return scale;
}

template <class T>
void encode_v3(const State<T>& s, int slots, PlaneView out) {
  std::memset(out.data, 0, static_cast<std::size_t>(v3_planes(slots)) * out.rows * out.cols);
  PlaneWriter<T> w(s, out);
  w.fill(kAllBoard, 1);
  s.h.food.for_each([&](int c) { w.cell(kAllFood, c) = 1; });
  s.hazard.for_each([&](int c) {
    const int harm = s.layers[c] * s.rules.hazard_damage;
    w.cell(kAllHarm, c) = clip_byte(harm);
    w.cell(kAllHeal, c) = clip_byte(-harm);
  });
  if (s.rules.wrapped) w.fill(kAllWrapped, 1);
  if (s.rules.constrictor) w.fill(kAllConstrictor, 1);
  const Arrivals<T> arrivals(s);
  const Roster roster = Roster::of(s);
  std::array<Standing, kMaxSlots> standings;
  stand(s, roster, standings);
  for (int slot = 0; slot < std::min(roster.count, slots); ++slot) {
    const int i = roster.seat[slot];
    const int base = kV3Common + slot * kV3Slot;
    const auto& snake = s.h.snake[i];
    // From the tail, so that of stacked segments the one that stays longest is left.
    for (int j = snake.length - 1; j >= 0; --j)
      w.cell(base + kSlotBody, s.segment(i, j)) = clip_byte(snake.length - j);
    w.cell(base + kSlotHead, s.head(i)) = 1;
    w.fill(base + kSlotHealth, snake.health);
    w.fill(base + kSlotLength, snake.length);
    w.fill(base + kSlotLead, lead(s, i));
    slot_areas(s, arrivals, i, base, w);
    slot_standing(s, standings[slot], i, base, w);
  }
}

template void encode_v3(const State<Small>&, int, PlaneView);
template void encode_v3(const State<Large>&, int, PlaneView);

}  // namespace snakekit
