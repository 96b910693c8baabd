#include "geometry.h"

#include <algorithm>
#include <memory>
#include <mutex>

namespace snakekit {

namespace {

// Multi-word shift by any distance; only wrapping moves need more than 63.
template <class Set>
Set shift_far(Set s, int n, bool up) {
  while (n > 0) {
    const int step = n > 63 ? 63 : n;
    s = up ? s.up(step) : s.down(step);
    n -= step;
  }
  return s;
}

}  // namespace

template <class T>
auto Geometry<T>::code(int x, int y) const -> Cell {
  if (x >= 0 && y >= 0 && x < width && y < height) return static_cast<Cell>(y * width + x);
  const int stride = width + 2 * T::kBorder;
  if constexpr (T::kBorder == 1) {
    // The ring of width 1, counted bottom row, top row, left column, right column.
    int i = 0;
    if (y < 0) {
      i = x + 1;
    } else if (y >= height) {
      i = stride + x + 1;
    } else {
      i = 2 * stride + y + (x < 0 ? 0 : height);
    }
    return static_cast<Cell>(cells + i);
  }
  return static_cast<Cell>(cells + (y + T::kBorder) * stride + x + T::kBorder);
}

template <class T>
std::pair<int, int> Geometry<T>::beyond(int code) const {
  const int stride = width + 2 * T::kBorder;
  int i = code - cells;
  if constexpr (T::kBorder == 1) {
    if (i < stride) return {i - 1, -1};
    i -= stride;
    if (i < stride) return {i - 1, height};
    i -= stride;
    return i < height ? std::pair{-1, i} : std::pair{width, i - height};
  }
  return {i % stride - T::kBorder, i / stride - T::kBorder};
}

template <class T>
auto Geometry<T>::wrapped_neighbours(const Set& s) const -> Set {
  const int column = (height - 1) * width;
  Set r = (s & right).down(width - 1) | (s & left).up(width - 1);
  r |= shift_far(s & top, column, false);
  r |= shift_far(s & bottom, column, true);
  return r;
}

template <class T>
void Geometry<T>::fill(int w, int h, bool wrap) {
  width = w;
  height = h;
  cells = w * h;
  wrapped = wrap;
  for (int y = 0; y < h; ++y) {
    for (int x = 0; x < w; ++x) {
      const int c = y * w + x;
      board.set(c);
      row[c] = static_cast<std::uint8_t>(y);
      if (x > 0) not_left.set(c);
      if (x == 0) left.set(c);
      if (x < w - 1) not_right.set(c);
      if (x == w - 1) right.set(c);
      if (y == 0) bottom.set(c);
      if (y == h - 1) top.set(c);
      if (!wrap) depth[c] = static_cast<std::uint8_t>(std::min({x, y, w - 1 - x, h - 1 - y}));
      if (wrap || depth[c] > 0) inner.set(c);
    }
  }
  constexpr std::array<int, kMoves> dx{0, 0, -1, 1};
  constexpr std::array<int, kMoves> dy{1, -1, 0, 0};
  for (int y = -T::kBorder; y < h + T::kBorder; ++y) {
    for (int x = -T::kBorder; x < w + T::kBorder; ++x) {
      for (int m = 0; m < kMoves; ++m) {
        int nx = x + dx[m];
        int ny = y + dy[m];
        if (wrap) {
          nx = (nx % w + w) % w;
          ny = (ny % h + h) % h;
        }
        // Only a snake that is dead already could go further out than the ring holds.
        next[code(x, y)][m] = holds(nx, ny) ? code(nx, ny) : code(x, y);
      }
    }
  }
}

template <class T>
const Geometry<T>& Geometry<T>::get(int width, int height, bool wrapped) {
  constexpr int n = kMaxSide + 1;
  static std::array<std::unique_ptr<Geometry>, n * n * 2> made;
  static std::mutex lock;
  const std::scoped_lock guard(lock);
  auto& slot = made.at((width * n + height) * 2 + (wrapped ? 1 : 0));
  if (!slot) {
    slot = std::make_unique<Geometry>();
    slot->fill(width, height, wrapped);
  }
  return *slot;
}

template struct Geometry<Small>;
template struct Geometry<Large>;

}  // namespace snakekit
