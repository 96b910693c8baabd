#include "hazards.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "random.h"

namespace snakekit {

namespace {

// Periods of the maps that do not ask the settings, in turns.
constexpr int kSpiralEvery = 3;
constexpr int kScatterEvery = 2;
constexpr int kGrowBoxEvery = 12;
constexpr int kExpandBoxEvery = 20;
constexpr int kMaxPitLayers = 4;
constexpr int kPitCycle = 7;

struct Rect {
  int x0, x1, y0, y1;

  [[nodiscard]] bool empty() const { return x0 > x1 || y0 > y1; }
  [[nodiscard]] bool holds(int x, int y) const { return x >= x0 && x <= x1 && y >= y0 && y <= y1; }
};

template <class T>
bool inside(const State<T>& s, int x, int y) {
  return x >= 0 && y >= 0 && x < s.geo->width && y < s.geo->height;
}

template <class T>
void add_at(State<T>& s, int x, int y) {
  if (inside(s, x, y)) s.add_layer(y * s.geo->width + x);
}

// The clockwise spiral that starts at (0, 0) and goes up: its k-th square.
std::pair<int, int> spiral_square(int k) {
  if (k == 0) return {0, 0};
  int r = 1;
  while ((2 * r + 1) * (2 * r + 1) <= k) ++r;
  const int i = k - (2 * r - 1) * (2 * r - 1);
  if (i < 2 * r) return {i - r + 1, r};
  if (i < 4 * r) return {r, 3 * r - 1 - i};
  if (i < 6 * r) return {5 * r - 1 - i, -r};
  return {-r, i - 7 * r + 1};
}

template <class T>
void grow_spiral(State<T>& s, Rng rng, int k) {
  const int w = s.geo->width;
  const int h = s.geo->height;
  const int x = between(rng, 3 * w / 10, 7 * w / 10);
  const int y = between(rng, 3 * h / 10, 7 * h / 10);
  // Beyond this the spiral has left the board on all sides.
  if (k >= 4 * std::max(w, h) * std::max(w, h)) return;
  const auto [dx, dy] = spiral_square(k);
  add_at(s, x + dx, y + dy);
}

template <class T>
void scatter(State<T>& s, Rng rng, int k) {
  const int n = s.geo->cells;
  if (k >= n) return;
  std::array<typename T::Cell, T::kCells> order;
  for (int i = 0; i < n; ++i) order[i] = static_cast<typename T::Cell>(i);
  for (int i = 0; i <= k; ++i) std::swap(order[i], order[i + rng.below(n - i)]);
  s.add_layer(order[k]);
}

template <class T>
void expand_scatter(State<T>& s, Rng rng, int k) {
  const int w = s.geo->width;
  if (k >= s.geo->cells) return;
  // The official map takes the row from the width, too, and so can start above a flat board.
  const int cx = between(rng, 1, w - 1);
  const int cy = between(rng, 1, std::min(w, s.geo->height) - 1);
  std::array<typename T::Cell, T::kCells> ring;
  for (int r = 0, before = 0;; ++r) {
    int n = 0;
    for (int c = 0; c < s.geo->cells; ++c) {
      if (std::max(std::abs(c % w - cx), std::abs(c / w - cy)) == r)
        ring[n++] = static_cast<typename T::Cell>(c);
    }
    shuffle(ring.begin(), ring.begin() + n, rng);
    if (k < before + n) {
      s.add_layer(ring[k - before]);
      return;
    }
    before += n;
  }
}

template <class T>
void expand_box(State<T>& s, Rng rng, int r) {
  const int w = s.geo->width;
  const int h = s.geo->height;
  const int cx = between(rng, 2, w - 2);
  const int cy = between(rng, 2, h - 2);
  for (int c = 0; c < s.geo->cells; ++c) {
    if (std::max(std::abs(c % w - cx), std::abs(c / w - cy)) == r) s.add_layer(c);
  }
}

// Adds one row or column at a random side of the box where there is room; false when it fills the
// board.
bool grow_side(Rect& box, Rect& added, int w, int h, Rng& rng) {
  std::array<int, 4> sides;
  int n = 0;
  if (box.x0 > 0) sides[n++] = 0;
  if (box.x1 < w - 1) sides[n++] = 1;
  if (box.y0 > 0) sides[n++] = 2;
  if (box.y1 < h - 1) sides[n++] = 3;
  if (n == 0) return false;
  added = box;
  switch (sides[rng.below(n)]) {
    case 0:
      added.x0 = added.x1 = --box.x0;
      break;
    case 1:
      added.x0 = added.x1 = ++box.x1;
      break;
    case 2:
      added.y0 = added.y1 = --box.y0;
      break;
    default:
      added.y0 = added.y1 = ++box.y1;
      break;
  }
  return true;
}

template <class T>
void grow_box(State<T>& s, Rng rng, int k) {
  const int w = s.geo->width;
  const int h = s.geo->height;
  const int x = between(rng, 2, w - 2);
  const int y = between(rng, 2, h - 2);
  Rect box{x, x, y, y};
  Rect added = box;
  for (int i = 0; i < k; ++i) {
    if (!grow_side(box, added, w, h, rng)) return;
  }
  for (int ay = added.y0; ay <= added.y1; ++ay) {
    for (int ax = added.x0; ax <= added.x1; ++ax) add_at(s, ax, ay);
  }
}

template <class T>
void widen_sinkhole(State<T>& s, int k) {
  const int side = s.geo->width;
  const int last = side <= 7 ? 2 : (side <= 11 ? 4 : 6);
  if (k > last) return;
  const int mid = side / 2;
  for (int y = mid - k; y <= mid + k; ++y) {
    for (int x = mid - k; x <= mid + k; ++x) {
      const bool corner = std::abs(x - mid) == k && std::abs(y - mid) == k;
      if (k == 0 || !corner) add_at(s, x, y);
    }
  }
}

template <class T>
void drain_pool(State<T>& s, Rng rng) {
  int total = 0;
  s.hazard.for_each([&](int c) { total += s.layers[c]; });
  if (total == 0) return;
  int at = rng.below(total);
  int found = -1;
  s.hazard.for_each([&](int c) {
    if (at >= 0 && at < s.layers[c]) found = c;
    at -= s.layers[c];
  });
  s.set_layers(found, s.layers[found] - 1);
}

template <class T>
void fill_pits(State<T>& s, int k) {
  const int w = s.geo->width;
  const int h = s.geo->height;
  for (int c = 0; c < s.geo->cells; ++c) {
    const int x = c % w;
    const int y = c / w;
    const bool start = (x == 1 || x == w - 2) && (y == 1 || y == h - 2);
    const bool pit = x % 2 == 1 && y % 2 == 1 && !start;
    s.set_layers(c, pit ? std::min(kMaxPitLayers, k % kPitCycle) : 0);
  }
}

}  // namespace

template <class T>
void shrink_to(State<T>& s, std::uint64_t seed, int steps) {
  Rng rng = stream(seed, Stream::kRegion);
  Rect open{0, s.geo->width - 1, 0, s.geo->height - 1};
  for (int i = 0; i < steps && !open.empty(); ++i) {
    switch (rng.below(4)) {
      case 0:
        ++open.x0;
        break;
      case 1:
        --open.x1;
        break;
      case 2:
        ++open.y0;
        break;
      default:
        --open.y1;
        break;
    }
  }
  if (s.pending_hazard) {
    std::fill(s.layers.begin() + s.geo->cells, s.layers.end(), std::uint8_t{0});
    s.rebuild_hazards();
  }
  for (int c = 0, y = 0; y < s.geo->height; ++y) {
    for (int x = 0; x < s.geo->width; ++x, ++c) {
      const int wanted = open.holds(x, y) ? 0 : 1;
      if (s.layers[c] != wanted) s.set_layers(c, wanted);
    }
  }
}

template <class T>
void change_hazards(State<T>& s, std::uint64_t seed, int turn) {
  const int every = s.rules.shrink_every;
  const auto region = stream(seed, Stream::kRegion);
  switch (s.rules.map) {
    case MapId::kRoyale:
      if (every > 0 && turn + 1 >= every) shrink_to(s, seed, (turn + 1) / every);
      break;
    case MapId::kSpiral:
      if (turn % kSpiralEvery == kSpiralEvery - 1) grow_spiral(s, region, turn / kSpiralEvery);
      break;
    case MapId::kScatter:
      if (turn % kScatterEvery == kScatterEvery - 1) scatter(s, region, turn / kScatterEvery);
      break;
    case MapId::kExpandScatter:
      if (turn % kScatterEvery == 0) expand_scatter(s, region, turn / kScatterEvery);
      break;
    case MapId::kGrowBox:
      if (turn % kGrowBoxEvery == 0) grow_box(s, region, turn / kGrowBoxEvery);
      break;
    case MapId::kExpandBox:
      if (turn % kExpandBoxEvery == 0) expand_box(s, region, turn / kExpandBoxEvery);
      break;
    case MapId::kSinkholes:
      if (every > 0 && turn > 0 && (turn - 1) % every == 0) widen_sinkhole(s, (turn - 1) / every);
      break;
    case MapId::kHealingPools:
      if (every > 0 && turn > 0 && turn % every == 0)
        drain_pool(s, stream(seed, Stream::kPools, static_cast<std::uint64_t>(turn)));
      break;
    case MapId::kHazardPits:
      if (every > 0 && turn > 0 && turn % every == 0) fill_pits(s, turn / every);
      break;
    default:
      break;
  }
}

void trail_hazards(State<Large>& s) {
  const int cells = s.geo->cells;
  const int width = s.geo->width;
  State<Large>::Set heads;
  for (int i = 0; i < s.seats; ++i) {
    if (s.alive(i)) heads.set(s.head(i));
  }
  for (int c = 0; c < cells; ++c) {
    const int worn = std::max(0, s.layers[c] - 1);
    const int fallen = heads.test(c) ? 0 : s.layers[cells + c];
    s.layers[c] = static_cast<std::uint8_t>(std::min(kMaxLayers, worn + fallen));
    s.layers[cells + c] = 0;
  }
  for (int i = 0; i < s.seats; ++i) {
    if (!s.alive(i) || s.tail_stacked(i)) continue;
    const int tail = s.tail(i);
    const auto [x, y] = s.geo->point(tail);
    auto& pending = s.layers[(y + s.geo->height) * width + x];
    pending = static_cast<std::uint8_t>(std::min(kMaxLayers, pending + s.h.snake[i].length));
  }
  s.rebuild_hazards();
}

#define SNAKEKIT_HAZARDS(T)                               \
  template void shrink_to(State<T>&, std::uint64_t, int); \
  template void change_hazards(State<T>&, std::uint64_t, int)

SNAKEKIT_HAZARDS(Small);
SNAKEKIT_HAZARDS(Large);

}  // namespace snakekit
