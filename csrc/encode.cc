#include "encode.h"

#include <algorithm>
#include <cstring>

namespace snakekit {

const std::array<float, kV1Planes> kV1Scale{100, 1, 32, 1, 1, 1, 1, 1, 8, 8, 1, 1, 1, 1, 1, 1, 1};
const std::array<float, kV2Planes> kV2Scale{1,   1,   32,  1,  32, 8, 8, 1,  1, 1, 100,
                                            100, 100, 100, 64, 64, 1, 1, 32, 4, 1, 1};

namespace {

void add(std::uint8_t& cell, int value) {
  cell = static_cast<std::uint8_t>(std::min(255, cell + value));
}

std::uint8_t clip(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); }

// One snake seen from another, all 23x23 planes that depend on it.
template <class T, class Plot>
void v1_snake(const State<T>& s, int seat, int own, Plot&& plot) {
  const auto& k = s.h.snake[seat];
  const int difference = k.length - s.h.snake[own].length;
  for (int i = 0; i < k.length; ++i) {
    const int c = s.segment(seat, i);
    plot(1, c, 1);
    plot(2, c, std::min(255, k.length - i));
    if (seat == own) continue;
    if (difference >= 0) {
      plot(8, c, std::min(255, difference + 1));
    } else {
      plot(9, c, std::min(255, -difference));
    }
  }
  plot(0, s.head(seat), k.health);
  if (seat != own && difference >= 0) plot(3, s.head(seat), 1);
  if (s.tail_stacked(seat)) plot(7, s.tail(seat), 1);
}

}  // namespace

template <class T>
void encode_v1(const State<T>& s, int seat, std::uint8_t* out) {
  constexpr int area = kV1Side * kV1Side;
  constexpr int centre = kV1Side / 2;
  std::memset(out, 0, static_cast<std::size_t>(kV1Planes) * area);
  const auto [hx, hy] = s.geo->point(s.head(seat));
  const auto plot = [&](int plane, int cell, int value) {
    const auto [x, y] = s.geo->point(cell);
    const int col = x - hx + centre;
    const int row = y - hy + centre;
    if (col < 0 || row < 0 || col >= kV1Side || row >= kV1Side) return;
    add(out[plane * area + row * kV1Side + col], value);
  };
  for (int i = 0; i < s.seats; ++i) {
    if (s.alive(i)) v1_snake(s, i, seat, plot);
  }
  for (int i = 0; i < s.h.num_food; ++i) plot(4, s.food[i], 1);
  if (s.alive(seat)) plot(6, s.head(seat), 1);
  const int count_plane = s.living() >= 2 ? 10 + std::min(s.living(), 8) - 2 : -1;
  const int x0 = std::max(0, centre - hx);
  const int x1 = std::min(kV1Side, s.geo->width - hx + centre);
  for (int row = std::max(0, centre - hy); row < std::min(kV1Side, s.geo->height - hy + centre);
       ++row) {
    if (x1 <= x0) break;
    std::memset(out + 5 * area + row * kV1Side + x0, 1, static_cast<std::size_t>(x1 - x0));
    if (count_plane >= 0)
      std::memset(out + count_plane * area + row * kV1Side + x0, 1,
                  static_cast<std::size_t>(x1 - x0));
  }
}

namespace {

template <class T>
class V2Writer {
 public:
  V2Writer(const State<T>& s, PlaneView out) : s_(s), out_(out), width_(s.geo->width) {}

  std::uint8_t& cell(int plane, int c) {
    const int row = c / width_;
    return out_.data[(plane * out_.rows + row) * out_.cols + (c - row * width_)];
  }
  void fill(int plane, int value) {
    for (int y = 0; y < s_.geo->height; ++y) {
      std::memset(out_.data + (plane * out_.rows + y) * out_.cols, clip(value),
                  static_cast<std::size_t>(width_));
    }
  }
  void mark(int plane, const typename State<T>::Set& set) {
    set.for_each([&](int c) { cell(plane, c) = 1; });
  }

 private:
  const State<T>& s_;
  PlaneView out_;
  int width_;
};

template <class T>
void v2_snake(const State<T>& s, int i, int own, V2Writer<T>& w) {
  const auto& k = s.h.snake[i];
  const int body_plane = i == own ? kOwnBody : kOtherBodies;
  const int difference = k.length - s.h.snake[own].length;
  for (int j = k.length - 1; j >= 0; --j) {
    const int c = s.segment(i, j);
    w.cell(body_plane, c) = clip(k.length - j);
    if (i == own) continue;
    w.cell(difference >= 0 ? kLongerBodies : kShorterBodies, c) =
        clip(difference >= 0 ? difference + 1 : -difference);
  }
  if (i == own) {
    w.cell(kOwnHead, s.head(i)) = 1;
    return;
  }
  w.cell(kOtherHeads, s.head(i)) = 1;
  w.cell(kOtherHealth, s.head(i)) = clip(k.health);
}

template <class T>
void v2_areas(const State<T>& s, const Arrivals<T>& arrivals, int own, V2Writer<T>& w) {
  const int length = s.h.snake[own].length;
  const bool alive = s.alive(own);
  for (int c = 0; c < s.geo->cells; ++c) {
    const int mine = alive ? arrivals.turn[own][c] : 0;
    int other = 0;
    bool longer_tie = false;
    for (int i = 0; i < s.seats; ++i) {
      if (i == own || !s.alive(i)) continue;
      const int t = arrivals.turn[i][c];
      if (t == 0) continue;
      if (other == 0 || t < other) other = t;
      longer_tie |= t == mine && s.h.snake[i].length >= length;
      if (t == 1) w.cell(s.h.snake[i].length >= length ? kLongerThreat : kShorterThreat, c) = 1;
    }
    if (mine != 0) w.cell(kOwnArrival, c) = static_cast<std::uint8_t>(kMaxArrival + 1 - mine);
    if (other != 0) w.cell(kOtherArrival, c) = static_cast<std::uint8_t>(kMaxArrival + 1 - other);
    const bool first = mine != 0 && (other == 0 || mine < other || (mine == other && !longer_tie));
    if (first) w.cell(kOwnArea, c) = 1;
    if (other != 0 && !first) w.cell(kOtherArea, c) = 1;
  }
}

}  // namespace

template <class T>
void encode_v2(const State<T>& s, const Arrivals<T>& arrivals, int seat, PlaneView out) {
  std::memset(out.data, 0, static_cast<std::size_t>(kV2Planes) * out.rows * out.cols);
  V2Writer<T> w(s, out);
  w.fill(kBoard, 1);
  for (int i = 0; i < s.seats; ++i) {
    if (i != seat && s.alive(i)) v2_snake(s, i, seat, w);
  }
  if (s.alive(seat)) v2_snake(s, seat, seat, w);
  w.mark(kFood, s.h.food);
  s.hazard.for_each([&](int c) {
    const int harm = s.layers[c] * s.rules.hazard_damage;
    w.cell(kHarm, c) = clip(harm);
    w.cell(kHeal, c) = clip(-harm);
  });
  v2_areas(s, arrivals, seat, w);
  w.fill(kOwnHealth, s.h.snake[seat].health);
  w.fill(kOwnLength, s.h.snake[seat].length);
  w.fill(kOthersAlive, s.living() - (s.alive(seat) ? 1 : 0));
  if (s.rules.wrapped) w.fill(kWrapped, 1);
  if (s.rules.constrictor) w.fill(kConstrictor, 1);
}

#define SNAKEKIT_ENCODE(T)                                      \
  template void encode_v1(const State<T>&, int, std::uint8_t*); \
  template void encode_v2(const State<T>&, const Arrivals<T>&, int, PlaneView)

SNAKEKIT_ENCODE(Small);
SNAKEKIT_ENCODE(Large);

}  // namespace snakekit
