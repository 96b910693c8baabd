#include "encode.h"

#include <algorithm>
#include <cstring>

#include "plane_writer.h"

namespace snakekit {

const std::array<float, kV1Planes> kV1Scale{100, 1, 32, 1, 1, 1, 1, 1, 8, 8, 1, 1, 1, 1, 1, 1, 1};
const std::array<float, kV2Planes> kV2Scale{1,   1,   32,  1,  32, 8, 8, 1,  1, 1, 100,
                                            100, 100, 100, 64, 64, 1, 1, 32, 4, 1, 1};

void scale_planes(int version, const std::uint8_t* in, int n, int cells, float* out) {
  const float* scale = version == 1 ? kV1Scale.data() : kV2Scale.data();
  const int planes = version == 1 ? kV1Planes : static_cast<int>(kV2Planes);
  for (int i = 0; i < n; ++i) {
    for (int p = 0; p < planes; ++p) {
      for (int c = 0; c < cells; ++c) *out++ = static_cast<float>(*in++) / scale[p];
    }
  }
}

namespace {

void add(std::uint8_t& cell, int value) {
  cell = static_cast<std::uint8_t>(std::min(255, cell + value));
}

constexpr int kV1Area = kV1Side * kV1Side;
constexpr int kV1Centre = kV1Side / 2;

// The part of the view that lies on the board, and the plane that tells how many live.
struct V1Frame {
  int row0;
  int row1;
  int col0;
  int col1;
  int count_plane;  // -1 with fewer than two living

  void fill(std::uint8_t* out, int value) const {
    if (col1 <= col0) return;
    for (int row = row0; row < row1; ++row) {
      const auto n = static_cast<std::size_t>(col1 - col0);
      std::memset(out + 5 * kV1Area + row * kV1Side + col0, value, n);
      if (count_plane < 0) continue;
      std::memset(out + count_plane * kV1Area + row * kV1Side + col0, value, n);
    }
  }
};

// Which planes a written cell can have touched, so that they can be cleared again.
enum V1Mark : int { kSegment = 0, kEnd = 1 << 10, kFoodCell = 2 << 10, kMarkBits = 3 << 10 };

void v1_clear(std::uint8_t* out, int mark) {
  std::uint8_t* cell = out + (mark & ~kMarkBits);
  switch (mark & kMarkBits) {
    case kSegment:
      for (const int plane : {1, 2, 8, 9}) cell[plane * kV1Area] = 0;
      break;
    case kEnd:
      for (const int plane : {0, 3, 6, 7}) cell[plane * kV1Area] = 0;
      break;
    default:
      cell[4 * kV1Area] = 0;
  }
}

// Places of the board in the view of one head.
template <class T>
struct V1View {
  const Geometry<T>& geo;
  int dx;
  int dy;

  V1View(const State<T>& s, int seat) : geo(*s.geo) {
    const auto [x, y] = geo.point(s.head(seat));
    dx = kV1Centre - x;
    dy = kV1Centre - y;
  }
  // Offset inside a plane, -1 outside the view.
  [[nodiscard]] int offset(int cell) const {
    const auto [x, y] = geo.point(cell);
    const auto col = static_cast<unsigned>(x + dx);
    const auto row = static_cast<unsigned>(y + dy);
    return col < kV1Side && row < kV1Side ? static_cast<int>(row * kV1Side + col) : -1;
  }
};

template <class T, class F>
void v1_snake(const State<T>& s, int i, int own, const V1View<T>& view, std::uint8_t* out,
              F&& wrote) {
  const auto& k = s.h.snake[i];
  const int difference = k.length - s.h.snake[own].length;
  const int plane = i == own ? -1 : (difference >= 0 ? 8 : 9);
  const int value = std::min(255, difference >= 0 ? difference + 1 : -difference);
  for (int j = 0; j < k.length; ++j) {
    const int at = view.offset(s.segment(i, j));
    if (at < 0) continue;
    add(out[kV1Area + at], 1);
    add(out[2 * kV1Area + at], std::min(255, k.length - j));
    if (plane >= 0) add(out[plane * kV1Area + at], value);
    wrote(kSegment | at);
  }
  if (const int at = view.offset(s.head(i)); at >= 0) {
    add(out[at], k.health);
    if (i != own && difference >= 0) add(out[3 * kV1Area + at], 1);
    if (i == own) out[6 * kV1Area + at] = 1;
    wrote(kEnd | at);
  }
  if (!s.tail_stacked(i)) return;
  if (const int at = view.offset(s.tail(i)); at >= 0) {
    add(out[7 * kV1Area + at], 1);
    wrote(kEnd | at);
  }
}

// Writes everything into planes that are zero; `wrote(mark)` hears of each single cell.
template <class T, class F>
V1Frame v1_planes(const State<T>& s, int seat, std::uint8_t* out, F&& wrote) {
  const V1View<T> view(s, seat);
  for (int i = 0; i < s.seats; ++i) {
    if (s.alive(i)) v1_snake(s, i, seat, view, out, wrote);
  }
  for (int i = 0; i < s.h.num_food; ++i) {
    const int at = view.offset(s.food[i]);
    if (at < 0) continue;
    out[4 * kV1Area + at] = 1;
    wrote(kFoodCell | at);
  }
  const V1Frame frame{std::max(0, view.dy), std::min(kV1Side, s.geo->height + view.dy),
                      std::max(0, view.dx), std::min(kV1Side, s.geo->width + view.dx),
                      s.living() >= 2 ? 10 + std::min(s.living(), 8) - 2 : -1};
  frame.fill(out, 1);
  return frame;
}

}  // namespace

template <class T>
void encode_v1(const State<T>& s, int seat, std::uint8_t* out) {
  std::memset(out, 0, static_cast<std::size_t>(kV1Planes) * kV1Area);
  v1_planes(s, seat, out, [](int) {});
}

template <class T>
void encode_v1(const State<T>& s, int seat, std::uint8_t* out, V1Trace& trace) {
  if (trace.count < 0) {
    std::memset(out, 0, static_cast<std::size_t>(kV1Planes) * kV1Area);
  } else {
    V1Frame{trace.rows[0], trace.rows[1], trace.cols[0], trace.cols[1], trace.count_plane}.fill(out,
                                                                                                0);
    for (int i = 0; i < trace.count; ++i) v1_clear(out, trace.mark[i]);
  }
  int n = 0;
  const V1Frame f = v1_planes(s, seat, out, [&](int mark) {
    if (n < V1Trace::kMarks) trace.mark[n] = static_cast<std::uint16_t>(mark);
    ++n;
  });
  trace.count = static_cast<std::int16_t>(n <= V1Trace::kMarks ? n : -1);
  trace.rows[0] = static_cast<std::int8_t>(f.row0);
  trace.rows[1] = static_cast<std::int8_t>(f.row1);
  trace.cols[0] = static_cast<std::int8_t>(f.col0);
  trace.cols[1] = static_cast<std::int8_t>(f.col1);
  trace.count_plane = static_cast<std::int8_t>(f.count_plane);
}

namespace {

template <class T>
void v2_snake(const State<T>& s, int i, int own, PlaneWriter<T>& w) {
  const auto& k = s.h.snake[i];
  const int body_plane = i == own ? kOwnBody : kOtherBodies;
  const int difference = k.length - s.h.snake[own].length;
  const int length_plane = difference >= 0 ? kLongerBodies : kShorterBodies;
  const std::uint8_t length_value = clip_byte(difference >= 0 ? difference + 1 : -difference);
  // From the tail, so that of stacked segments the one that stays longest is left.
  for (int j = k.length - 1; j >= 0; --j) {
    const int c = s.segment(i, j);
    w.cell(body_plane, c) = clip_byte(k.length - j);
    if (i != own) w.cell(length_plane, c) = length_value;
  }
  if (i == own) {
    w.cell(kOwnHead, s.head(i)) = 1;
    return;
  }
  w.cell(kOtherHeads, s.head(i)) = 1;
  w.cell(kOtherHealth, s.head(i)) = clip_byte(k.health);
}

// Plain loops over bytes, which compilers turn into vector instructions.
template <class T>
void v2_areas(const State<T>& s, const Arrivals<T>& arrivals, int own, PlaneWriter<T>& w) {
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
  PlaneWriter<T> w(s, out);
  w.fill(kBoard, 1);
  for (int i = 0; i < s.seats; ++i) {
    if (i != seat && s.alive(i)) v2_snake(s, i, seat, w);
  }
  if (s.alive(seat)) v2_snake(s, seat, seat, w);
  s.h.food.for_each([&](int c) { w.cell(kFood, c) = 1; });
  s.hazard.for_each([&](int c) {
    const int harm = s.layers[c] * s.rules.hazard_damage;
    w.cell(kHarm, c) = clip_byte(harm);
    w.cell(kHeal, c) = clip_byte(-harm);
  });
  v2_areas(s, arrivals, seat, w);
  w.fill(kOwnHealth, s.h.snake[seat].health);
  w.fill(kOwnLength, s.h.snake[seat].length);
  w.fill(kOthersAlive, s.living() - (s.alive(seat) ? 1 : 0));
  if (s.rules.wrapped) w.fill(kWrapped, 1);
  if (s.rules.constrictor) w.fill(kConstrictor, 1);
}

#define SNAKEKIT_ENCODE(T)                                                \
  template void encode_v1(const State<T>&, int, std::uint8_t*, V1Trace&); \
  template void encode_v1(const State<T>&, int, std::uint8_t*);           \
  template void encode_v2(const State<T>&, const Arrivals<T>&, int, PlaneView)

SNAKEKIT_ENCODE(Small);
SNAKEKIT_ENCODE(Large);

}  // namespace snakekit
