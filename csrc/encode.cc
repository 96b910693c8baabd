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

// Offsets of cells inside the planes of a view that may be larger than the board.
template <class T>
class V2Writer {
 public:
  V2Writer(const State<T>& s, PlaneView out)
      : geo_(*s.geo),
        out_(out.data),
        stride_(out.rows * out.cols),
        cols_(out.cols),
        gap_(out.cols - geo_.width) {}

  std::uint8_t& cell(int plane, int c) {
    return out_[plane * stride_ + c + (gap_ == 0 ? 0 : geo_.row[c] * gap_)];
  }
  void fill(int plane, int value) {
    if (gap_ == 0) {
      std::memset(out_ + plane * stride_, clip(value), static_cast<std::size_t>(geo_.cells));
      return;
    }
    for (int y = 0; y < geo_.height; ++y) {
      std::memset(out_ + plane * stride_ + y * cols_, clip(value),
                  static_cast<std::size_t>(geo_.width));
    }
  }
  void copy(int plane, const std::uint8_t* cells) {
    if (gap_ == 0) {
      std::memcpy(out_ + plane * stride_, cells, static_cast<std::size_t>(geo_.cells));
      return;
    }
    for (int y = 0; y < geo_.height; ++y) {
      std::memcpy(out_ + plane * stride_ + y * cols_, cells + y * geo_.width,
                  static_cast<std::size_t>(geo_.width));
    }
  }

 private:
  const Geometry<T>& geo_;
  std::uint8_t* out_;
  int stride_;
  int cols_;
  int gap_;
};

template <class T>
void v2_snake(const State<T>& s, int i, int own, V2Writer<T>& w) {
  const auto& k = s.h.snake[i];
  const int body_plane = i == own ? kOwnBody : kOtherBodies;
  const int difference = k.length - s.h.snake[own].length;
  const int length_plane = difference >= 0 ? kLongerBodies : kShorterBodies;
  const std::uint8_t length_value = clip(difference >= 0 ? difference + 1 : -difference);
  // From the tail, so that of stacked segments the one that stays longest is left.
  for (int j = k.length - 1; j >= 0; --j) {
    const int c = s.segment(i, j);
    w.cell(body_plane, c) = clip(k.length - j);
    if (i != own) w.cell(length_plane, c) = length_value;
  }
  if (i == own) {
    w.cell(kOwnHead, s.head(i)) = 1;
    return;
  }
  w.cell(kOtherHeads, s.head(i)) = 1;
  w.cell(kOtherHealth, s.head(i)) = clip(k.health);
}

// Plain loops over bytes, which compilers turn into vector instructions.
template <class T>
void v2_areas(const State<T>& s, const Arrivals<T>& arrivals, int own, V2Writer<T>& w) {
  using Cells = std::array<std::uint8_t, T::kCells>;
  const int n = s.geo->cells;
  Cells mine;
  Cells longer;
  Cells shorter;
  longer.fill(kNever);
  shorter.fill(kNever);
  if (s.alive(own)) {
    mine = arrivals.turn[own];
  } else {
    mine.fill(kNever);
  }
  for (int i = 0; i < s.seats; ++i) {
    if (i == own || !s.alive(i)) continue;
    const auto& turn = arrivals.turn[i];
    auto& soonest = s.h.snake[i].length >= s.h.snake[own].length ? longer : shorter;
    for (int c = 0; c < n; ++c) soonest[c] = std::min(soonest[c], turn[c]);
  }
  const auto nearness = [](std::uint8_t turn) {
    return turn == kNever ? std::uint8_t{0} : static_cast<std::uint8_t>(kMaxArrival + 1 - turn);
  };
  const auto plot = [&](int plane, auto&& value) {
    Cells cells;
    for (int c = 0; c < n; ++c) cells[c] = static_cast<std::uint8_t>(value(c));
    w.copy(plane, cells.data());
  };
  const auto first = [&](int c) {
    return static_cast<std::uint8_t>(mine[c] < longer[c]) &
           static_cast<std::uint8_t>(mine[c] <= shorter[c]) &
           static_cast<std::uint8_t>(mine[c] != kNever);
  };
  plot(kLongerThreat, [&](int c) { return longer[c] == 1; });
  plot(kShorterThreat, [&](int c) { return shorter[c] == 1; });
  plot(kOwnArrival, [&](int c) { return nearness(mine[c]); });
  plot(kOtherArrival, [&](int c) { return nearness(std::min(longer[c], shorter[c])); });
  plot(kOwnArea, first);
  plot(kOtherArea, [&](int c) {
    return static_cast<std::uint8_t>(std::min(longer[c], shorter[c]) != kNever) &
           static_cast<std::uint8_t>(first(c) == 0);
  });
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
  s.h.food.for_each([&](int c) { w.cell(kFood, c) = 1; });
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
